import { describe, expect } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as HoldFollower from "../../../src/application/payers/HoldFollower.js"
import type { Asker } from "../../../src/application/policies/Judgement.js"
import * as Rulebook from "../../../src/application/policies/Rulebook.js"
import * as Rules from "../../../src/application/policies/Rules.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { type ChainClient, ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import type { PreparedOp } from "../../../src/application/ports/journal/Records.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import type { OpCall } from "../../../src/application/prepare/Call.js"
import { nothing } from "../../../src/application/prepare/Preparation.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import type { Limit, Rule } from "../../../src/domain/policy/Policy.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import * as LoopMonitor from "../../support/LoopMonitor.js"
import * as Landings from "../../support/lanes/Landings.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

/** A day's limit of 150 tokens, payments of 100, and a caller's node that shows an empty chain. */

const { alice, chainId } = Make
const { entryPoint } = Landings
const [token, shop, wallet] = [Make.address(0x70), Make.address(0x50), Make.address(0xa001)]
const look = 5_000
/** Milliseconds of work between two turns of the event loop. */
const mostHeld = 100

const limit = (asset: string, max: bigint): Limit =>
  ({ name: asset, chain: chainId.toString(), asset, per: "day", max }) as Limit

const boundOf = (
  subject: string,
  limits: ReadonlyArray<Limit>,
  mode: "enforce" | "observe"
): Rulebook.Bound => ({
  countedAs: subject,
  layer: "account",
  subject,
  version: 1,
  policy: {
    mode,
    expiresAt: 0,
    rules: [{ name: "all", effect: "allow", match: { kinds: ["erc20.transfer", "native"] } }],
    limits
  }
})

/** A payment's op under the key; it may land until second 600. */
const opOf = (key: bigint, index = 0): Exclude<PreparedOp, { readonly kind: "direct" }> =>
  Make.op({
    index,
    nonceKey: key,
    unsigned: Make.unsigned(Nonce.make(key, 0n)),
    space: Make.space(1, { entryPoint }),
    window: { validAfter: 0, validUntil: 600 }
  })

const callOf = (index = 0, dependsOn: number | null = null, amount = 100n): OpCall => ({
  requestId: "r1",
  index,
  kind: "op",
  wallet,
  custody: 1,
  window: null,
  dependsOn,
  to: token,
  value: 0n,
  data: Words.call(Keccak.selector("transfer(address,uint256)"), [Words.address(shop), Words.uint(amount)])
})

interface Options {
  readonly limits?: ReadonlyArray<Limit>
  readonly subject?: string
  readonly mode?: "enforce" | "observe"
  /** Rules of the wallet's own policy; default: it has none. */
  readonly others?: ReadonlyArray<Rule>
  readonly hasOperatorNode?: boolean
  readonly budgets?: Partial<Budgets["Service"]>
  /** The operator's. */
  readonly node?: Partial<ChainClient>
}

const setting = ({
  budgets: changed = {},
  hasOperatorNode = true,
  limits = [limit(token, 150n)],
  mode = "enforce",
  node = {},
  others,
  subject = "account"
}: Options = {}) =>
  Effect.gen(function* () {
    const budgets = { ...(yield* InMemory.makeBudgets), ...changed }
    const chain = Landings.makeChain()
    const operators = { ...chain.client, transactionCount: () => Effect.succeed(0n), ...node }
    const profile = NetworkProfile.make({
      chainId,
      settledDepth: 3,
      ...(hasOperatorNode && { rpc: Redacted.make("http://operator") })
    })
    const bound = boundOf(subject, limits, mode)
    const ofWallet = {
      ...bound,
      subject: `wallet:${wallet}`,
      policy: { ...bound.policy, limits: [], rules: others ?? [] }
    }
    const book = {
      bound: new Map([
        [subject, [bound]],
        ...(others === undefined ? [] : [[ofWallet.subject, [ofWallet]] as const])
      ]),
      lists: { operator: new Map(), account: new Map() }
    }
    const services = yield* Layer.build(
      Rules.layer.pipe(
        Layer.provide([
          Layer.succeed(Budgets, budgets),
          Layer.succeed(ChainRpc, { connect: () => Effect.succeed(operators) } as never),
          Layer.succeed(Rulebook.Rulebook, { of: () => Effect.succeed(book) }),
          Layer.succeed(HoldFollower.HoldFollower, HoldFollower.make(budgets, yield* Effect.scope))
        ])
      )
    )
    const askerOf = (
      calls: ReadonlyArray<OpCall> = [callOf()],
      access: object = { key: { clientId: "key 1" } },
      keyId: string | null = null
    ): Asker =>
      ({
        calls,
        caller: { requestId: "r1", principal: { accountId: alice, keyId } },
        context: {
          kind: "ops",
          accountId: alice,
          chainId,
          access,
          signers: [],
          submitter: Make.lane.signer,
          version: "v0.7",
          entryPoint,
          payer: { paymaster: null, release: () => Effect.void },
          connection: { chain: Landings.makeChain().client, trust: "caller", profile }
        },
        endpoint: "/execute",
        requestId: "r1"
      }) as unknown as Asker
    const rules = Context.get(services, Rules.Rules)
    const answered = (binding: ReturnType<typeof rules.bind>) =>
      Effect.match(binding, {
        onFailure: (error) => (error._tag === "PayerRefusal" ? error.failure.code : error.code),
        onSuccess: () => "held"
      })
    /** Binds the payment's op of this key. */
    const bind = (key: bigint, asker = askerOf()) =>
      answered(rules.bind(asker, opOf(key), Keccak.hashText(`op ${key}`)))
    const figures = (asset: string = token) =>
      budgets.figures(Rulebook.potOf(alice, bound, limit(asset, 0n), null), 0, "day")
    return { answered, askerOf, bind, budgets, chain, figures, rules }
  })

const land = (
  { chain }: Effect.Success<ReturnType<typeof setting>>,
  key: bigint,
  { success = true, cost = 7n } = {}
) => chain.land(Keccak.hashText(`op ${key}`), cost, undefined, { sender: wallet, nonce: key << 64n, success })

describe("a request of thousands of payments", () => {
  const addresses = (from: number) => Array.from({ length: 100 }, (_, at) => Make.address(from + at))
  const others = Array.from(
    { length: 100 },
    (_, at): Rule => ({
      name: `shops ${at}`,
      effect: "allow",
      match: { kinds: ["erc20.transfer"], to: [`list:${at}`, ...addresses(0x10_0000 + 100 * at)] }
    })
  )
  const pay: Rule = { name: "all", effect: "allow", match: { kinds: ["erc20.transfer"] } }

  test("is judged without a long hold of the event loop", function* () {
    const { askerOf, rules } = yield* setting({ others: [...others, pay] })
    const calls = Array.from({ length: 4_000 }, (_, index) => callOf(index))
    const waiting = new Map(calls.map(({ index }) => [index, null]))
    const { longest } = yield* Effect.promise(() =>
      LoopMonitor.leastOf(mostHeld, async () => {
        const monitor = LoopMonitor.start()
        const prepared = { ...nothing, waiting } as never
        const { batches } = await Effect.runPromise(rules.judge([askerOf(calls)], [Result.succeed(prepared)]))
        monitor.stop()
        const [made] = batches
        expect(made && Result.isSuccess(made) && made.success.failed.size).toBe(0)
        return { longest: monitor.longest() }
      })
    )
    expect(longest).toBeLessThan(mostHeld)
  })
})

describe("a payment that is signed", () => {
  test("holds its amount once for all its versions with one nonce", function* () {
    const { bind, figures } = yield* setting()
    expect([yield* bind(1n), yield* bind(1n)]).toEqual(["held", "held"])
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
  })

  test("is a further amount under another nonce, whatever the caller's node shows", function* () {
    const { bind, chain, figures } = yield* setting()
    expect(yield* bind(1n)).toBe("held")
    chain.mine(62)
    expect(yield* bind(2n)).toBe("policy_refused")
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
  })

  test("is free to take another nonce once the first is over at settled depth of the operator's node", function* () {
    const { bind, chain, figures } = yield* setting()
    expect(yield* bind(1n)).toBe("held")
    // The settled block is two below the latest: 600 seconds are block 60.
    chain.mine(62)
    expect(yield* bind(2n)).toBe("policy_refused")
    chain.mine(1)
    expect(yield* bind(2n)).toBe("held")
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
  })

  test("stays counted without a node of the operator", function* () {
    const { bind, chain, figures } = yield* setting({ hasOperatorNode: false })
    expect(yield* bind(1n)).toBe("held")
    chain.mine(100)
    yield* Time.adjust(24 * 3_600_000 - 1)
    expect(yield* bind(2n)).toBe("policy_refused")
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
  })

  test("stays counted after its element has failed", function* () {
    const { askerOf, bind, figures, rules } = yield* setting()
    expect(yield* bind(1n)).toBe("held")
    yield* rules.release(askerOf().context, [opOf(1n)])
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
  })

  test("is booked when it has landed, and its nonce holds nothing more", function* () {
    const made = yield* setting()
    const { bind, chain, figures } = made
    yield* bind(1n)
    chain.mine(5)
    land(made, 1n)
    chain.mine(2)
    yield* Time.adjust(look)
    expect(yield* figures()).toEqual({ held: 0n, booked: 100n })
    expect(yield* bind(1n)).toBe("held")
    expect(yield* bind(2n)).toBe("policy_refused")
    expect(yield* figures()).toEqual({ held: 0n, booked: 100n })
  })

  test("is booked where a reorganisation put its block below the head at its signature", function* () {
    const made = yield* setting()
    const { bind, chain, figures } = made
    chain.mine(5)
    land(made, 1n)
    chain.mine(1)
    yield* bind(1n)
    chain.mine(70)
    yield* Time.adjust(look)
    expect(yield* figures()).toEqual({ held: 0n, booked: 100n })
  })

  test("costs its real gas and no amount when it is reverted", function* () {
    const made = yield* setting({ limits: [limit(token, 150n), limit("fees", 10n ** 40n)] })
    const { bind, chain, figures } = made
    yield* bind(1n)
    const { unsigned } = opOf(1n)
    expect((yield* figures("fees")).held).toBe(Gas.requiredPrefund("v0.7", unsigned))
    chain.mine(5)
    land(made, 1n, { success: false })
    chain.mine(2)
    yield* Time.adjust(look)
    expect([yield* figures(), yield* figures("fees")]).toEqual([
      { held: 0n, booked: 0n },
      { held: 0n, booked: 7n }
    ])
    expect(yield* bind(2n)).toBe("held")
  })

  test("costs its real gas under a limit that ignores approvals", function* () {
    const fees: Limit = { ...limit("fees", 10n ** 40n), approvals: "ignore" }
    const made = yield* setting({ limits: [fees] })
    yield* made.bind(1n)
    made.chain.mine(5)
    land(made, 1n, { success: false })
    made.chain.mine(2)
    yield* Time.adjust(look)
    expect(yield* made.figures("fees")).toEqual({ held: 0n, booked: 7n })
  })

  test("is not signed when its amount is not held any more, or the operator's node knows no block", function* () {
    const gone = yield* setting({ budgets: { bind: () => Effect.succeed(false) } })
    expect(yield* gone.bind(1n)).toBe("unavailable")
    const { bind, figures } = yield* setting({ node: { block: () => Effect.succeed(null) } })
    expect(yield* bind(1n)).toBe("unavailable")
    expect(yield* figures()).toEqual({ held: 0n, booked: 0n })
  })
})

describe("a transaction of the signer", () => {
  const direct: PreparedOp = {
    ...Make.direct("r1"),
    unsigned: { ...Make.direct("r1").unsigned, value: 100n }
  } as PreparedOp
  const call = { ...callOf(), kind: "direct", to: shop, value: 100n, data: Hex.empty }

  test("is a further amount under a second nonce", function* () {
    for (const [max, second] of [
      [150n, "policy_refused"],
      [200n, "held"]
    ] as const) {
      const { answered, askerOf, figures, rules } = yield* setting({ limits: [limit("native", max)] })
      const asker = askerOf([call as never])
      const under = (nonce: bigint) => answered(rules.bindDirect(asker, direct as never, nonce))
      expect([yield* under(5n), yield* under(5n), yield* under(6n)]).toEqual(["held", "held", second])
      expect((yield* figures("native")).held).toBe(second === "held" ? 200n : 100n)
    }
  })
})

describe("rules", () => {
  test("leave out elements without room and their dependants, which hold nothing", function* () {
    const { askerOf, budgets, figures, rules } = yield* setting()
    const asker = askerOf([callOf(0), callOf(1), callOf(2, 1, 10n)])
    const ops = [opOf(1n, 0), opOf(2n, 1), { ...opOf(3n, 2), dependsOn: [1] }]
    const [made] = yield* rules.reserve([asker], [Result.succeed({ ...nothing, ops })])
    if (made === undefined || Result.isFailure(made)) throw new Error("expected a batch")
    expect(made.success.ops.map(({ index }) => index)).toEqual([0])
    expect([...made.success.failed].map(([index, { code }]) => [index, code])).toEqual([
      [1, "policy_refused"],
      [2, "dependency_failed"]
    ])
    expect(yield* figures()).toEqual({ held: 100n, booked: 0n })
    yield* rules.release(asker.context, [opOf(1n, 0)])
    expect(yield* budgets.open(chainId)).toEqual([])
  })

  test("are logged and refuse nothing while they are observed, and count", function* () {
    const { askerOf, figures, rules } = yield* setting({ mode: "observe" })
    const logged = yield* Log.listen
    const asker = askerOf([callOf(0), callOf(1)])
    const ops = [opOf(1n, 0), opOf(2n, 1)]
    const [made] = yield* rules.reserve([asker], [Result.succeed({ ...nothing, ops })])
    if (made === undefined || Result.isFailure(made)) throw new Error("expected a batch")
    expect(made.success.ops).toHaveLength(2)
    expect(logged.map(({ annotations }) => annotations)).toMatchObject([
      { requestId: "r1", index: 1, reason: expect.stringContaining("100 asked, 50 left") }
    ])
    expect(yield* figures()).toEqual({ held: 200n, booked: 0n })
  })

  test("leave the room of a request to the elements after a refused one", function* () {
    const most = { ...limit(token, 150n), per: "request" } as Limit
    const small: Rule = {
      name: "small",
      effect: "allow",
      match: { kinds: ["erc20.transfer"], maxAmount: 100n }
    }
    const { askerOf, rules } = yield* setting({ limits: [most], others: [small] })
    const asker = askerOf([
      callOf(0, null, 101n),
      callOf(1),
      callOf(2, 0),
      callOf(3, null, 51n),
      callOf(4, null, 50n)
    ])
    const {
      batches: [made],
      names
    } = yield* rules.judge([asker], [Result.succeed(nothing)])
    expect(names[0]?.map(({ subject }) => subject)).toEqual(["account", `wallet:${wallet}`])
    if (made === undefined || Result.isFailure(made)) throw new Error("expected a batch")
    expect(new Set(made.success.failed.keys())).toEqual(new Set([0, 2, 3]))
  })

  test("rules of a key bind its requests only; rules of an account bind its own top-ups, not those of the operator", function* () {
    const ofKey = yield* setting({ subject: "key:1", limits: [limit(token, 50n)] })
    const asked = (keyId: string) => ofKey.bind(1n, ofKey.askerOf(undefined, undefined, keyId))
    expect([yield* asked("1"), yield* asked("2")]).toEqual(["policy_refused", "held"])
    const { askerOf, bind } = yield* setting({ limits: [limit(token, 50n)] })
    const by = (key: unknown) => bind(1n, askerOf(undefined, { key }))
    expect([yield* by({ clientId: "treasury", versionId: "1" }), yield* by("treasury")]).toEqual([
      "policy_refused",
      "held"
    ])
  })
})
