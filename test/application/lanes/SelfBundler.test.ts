import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { Interface } from "ethers"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import type * as LaneSlot from "../../../src/application/lanes/LaneSlot.js"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import * as SelfBundler from "../../../src/application/lanes/SelfBundler.js"
import type { Bundle } from "../../../src/application/ports/chain/Bundler.js"
import { type BlockTag, type Call, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { SignerError } from "../../../src/application/ports/Signers.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as L1Fee from "../../../src/domain/erc4337/gas/L1Fee.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Ops from "../../support/lanes/Ops.js"
import * as Parties from "../../support/Parties.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const entryPoint = EntryPoint.canonical["v0.7"]
const unasked = Effect.die(new Error("not asked for"))

const indexes = [0, 1, 2, 3, 4]
const senderOf = (index: number) => Make.address(0xaa0000 + index)

const signedOp = (index: number): Bundle["ops"][number] => ({
  index,
  userOpHash: Make.word(index),
  op: {
    ...Ops.plain,
    sender: senderOf(index),
    nonce: BigInt(index),
    callGasLimit: 50_000n,
    verificationGasLimit: 50_000n,
    preVerificationGas: 50_000n,
    maxFeePerGas: 100n,
    maxPriorityFeePerGas: 10n
  }
})

/** What is told of a transaction that carries these ops. */
type Simulation = (ops: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<SimulatedOp>>

interface SimulatedOp {
  readonly index: number
  readonly success: boolean
  /** Gas for which it is charged. */
  readonly charged: bigint
}

interface Tells {
  readonly latest?: bigint
  readonly pending?: bigint
  /** Left out: the node tells nothing of what ops would do, but that they would go through. */
  readonly simulation?: Simulation
  /** Why what carries these requests is not signed; null: it is. */
  readonly refusal?: (
    requestIds: ReadonlyArray<string>
  ) => NonceManager.LaneFunds | NonceManager.OtherRoute | SignerError | JournalError | null
  /** What the EOA has; left out: an ether. */
  readonly balance?: Effect.Effect<bigint, ChainRpcError>
  readonly baseFee?: bigint | null
  /** What a key does before it signs. */
  readonly signing?: Effect.Effect<void>
  /** Nonces below which nothing holds the work up, one for each turn; then 0. */
  readonly drainedTo?: Array<bigint>
  /** The next turns that are defects. */
  readonly defects?: Array<Error>
}

const events = new Interface([
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)"
])

const logOf = ({ charged, index, success }: SimulatedOp, logIndex: number) => {
  const { data, topics } = events.encodeEventLog("UserOperationEvent", [
    Make.word(index),
    senderOf(index),
    Address.zero,
    0n,
    success,
    0n,
    charged
  ])
  return {
    address: entryPoint,
    topics: topics.map((topic) => Hex.unsafe32(topic)),
    data: Hex.unsafe(data),
    logIndex
  }
}

/** A lane, and its node. */
const world = (tells: Tells = {}) =>
  Effect.gen(function* () {
    const { chain: client } = yield* Monitor.node("any")
    const chain = {
      ...client,
      simulate: ([call]: ReadonlyArray<Call>) =>
        tells.simulation === undefined
          ? Effect.fail(
              new ChainRpcError({ reason: "unsupported", origin: "any", message: "no such method" })
            )
          : Effect.map(
              tells.simulation(
                indexes.filter((index) => call?.data?.includes(senderOf(index).slice(2).toLowerCase()))
              ),
              (ops) => [
                {
                  success: true,
                  data: Hex.empty,
                  gasUsed: 100_000n * BigInt(ops.length),
                  logs: ops.map(logOf)
                }
              ]
            ),
      call: () => Effect.succeed({ success: true, data: Hex.empty }),
      transactionCount: (_: unknown, tag: unknown) =>
        Effect.succeed((tag === "pending" ? tells.pending : undefined) ?? tells.latest ?? 0n),
      balance: () => tells.balance ?? Effect.succeed(10n ** 18n),
      block: (tag: BlockTag) =>
        Effect.map(client.block(tag), (block) =>
          block === null
            ? null
            : { ...block, baseFeePerGas: tells.baseFee === undefined ? block.baseFeePerGas : tells.baseFee }
        )
    }
    const wanted: Array<LaneSlot.Work> = []
    const watched: Array<bigint> = []
    const nodes: Array<unknown> = []
    const signed: Array<NonceManager.Payload> = []
    const attempts: Array<ReadonlyArray<string>> = []
    const mayGo = yield* Deferred.make<void>()
    const inFlight = InFlight.make()
    const bundler = SelfBundler.make({
      inFlight,
      lanes: {
        exclusive: (_, effect) => effect,
        sign: (payload) =>
          Effect.suspend(() => {
            attempts.push(payload.ops.map(({ requestId }) => requestId))
            const refused = tells.refusal?.(payload.ops.map(({ requestId }) => requestId)) ?? null
            if (refused !== null) return Effect.fail(refused)
            return Effect.map(tells.signing ?? Effect.void, () => {
              signed.push(payload)
              return Monitor.recordOf(signed.length - 1, payload.access, { ops: payload.ops })
            })
          }),
        fill: () => unasked,
        admits: () => unasked,
        current: () => unasked,
        replace: () => unasked
      },
      slots: {
        arrive: () => signed.length,
        // Work for which another route is in flight runs again.
        take: (work, effect) =>
          Effect.suspend(() => {
            const defect = tells.defects?.pop()
            if (defect !== undefined) return Effect.die(defect)
            wanted.push(work)
            return effect(tells.drainedTo?.shift() ?? 0n)
          }).pipe(
            Effect.retry({ while: (error) => error instanceof NonceManager.OtherRoute }),
            (turn) => Effect.andThen(Deferred.await(mayGo), turn) as never
          ),
        waiting: () => 0
      },
      monitor: {
        watch: ({ record }) => Effect.sync(() => void watched.push(record.nonce)),
        useNode: (_, __, used) => Effect.sync(() => void nodes.push(used)),
        forget: () => Effect.void,
        isWatched: () => false,
        underWay: () => 0,
        leave: () => Effect.void,
        receiptOf: () => unasked
      },
      scope: yield* Effect.scope
    })
    const bundle = (requestId: string, change: Partial<Bundle> = {}): Bundle => ({
      requestId,
      chain,
      profile: Monitor.profile,
      access: Monitor.callers,
      version: "v0.7",
      entryPoint,
      ops: [signedOp(signed.length)],
      aggregate: null,
      alone: false,
      submitter: Parties.unasked,
      prices: { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false },
      l1Fee: 0n,
      gasBound: 1_000_000n,
      gasOvershoot: Percent.zero,
      ...change
    })
    /** The requests of each transaction that was signed. */
    const transactions = () =>
      signed.map(({ ops }) => ops.map(({ requestId }) => requestId).join(" ")).join(" | ")
    const submit = (each: Bundle) =>
      Effect.match(bundler.submit(each), { onFailure: ({ reason }) => reason, onSuccess: () => "sent" })
    /** What each request is told when all of them wait for the lane, and the transactions. */
    const outcomes = (...bundles: ReadonlyArray<Bundle>) =>
      Effect.gen(function* () {
        const fibers = yield* Effect.forEach(bundles, (each) => Effect.forkChild(submit(each)))
        yield* Time.adjust("1 second")
        yield* Deferred.succeed(mayGo, undefined)
        const told = yield* Effect.forEach(fibers, Fiber.join)
        return `${told.join(" ")}: ${transactions()}`
      })
    const together = (...bundles: ReadonlyArray<Bundle>) => Effect.map(outcomes(...bundles), transactions)
    return {
      attempts,
      bundle,
      bundler,
      chain,
      inFlight,
      mayGo,
      nodes,
      outcomes,
      signed,
      together,
      transactions,
      wanted,
      watched
    }
  })

test("a nonce that a node tells is the higher one, and is believed where a transaction can have it", function* () {
  const most = 2n ** 64n - 2n
  for (const [tells, nonce] of [
    [{ latest: 5n, pending: 7n }, 7n],
    [{ latest: 5n, pending: 4n }, 5n],
    // Further ahead than any pool is deep the lane would wait for ever.
    [{ latest: 5n, pending: 5n + 1_024n }, 5n + 1_024n],
    [{ latest: 5n, pending: 5n + 1_025n }, null],
    [{ latest: most }, most],
    [{ latest: most + 1n }, null]
  ] as const) {
    const { bundle, outcomes, signed } = yield* world(tells)
    expect(yield* outcomes(bundle("r"))).toBe(nonce === null ? "nodeFailed: " : "sent: r")
    expect(signed.map(({ chainNonce }) => chainNonce)).toEqual(nonce === null ? [] : [nonce])
  }
})

describe("bundles that wait for a lane", () => {
  test("leave in one transaction, at the highest price of any", function* () {
    const { bundle, signed, together } = yield* world()
    const dearer = { prices: { maxFeePerGas: 120n, maxPriorityFeePerGas: 9n, legacy: false } }
    expect(yield* together(bundle("a"), bundle("b", dearer), bundle("c"))).toBe("a b c")
    expect(signed[0]?.prices).toEqual({ maxFeePerGas: 120n, maxPriorityFeePerGas: 10n, legacy: false })
  })

  test("of the service's EOA are not sent when its node can not tell what they would pay it", function* () {
    const { bundle, outcomes } = yield* world()
    expect(yield* outcomes(bundle("a", { access: Monitor.service }))).toBe("unpaid: ")
  })

  test("share none with those of another account, EntryPoint, node, kind of price or signature, nor go beside one alone", function* () {
    const aggregate = { aggregator: Make.address(9), signature: Hex.empty, gas: 1n }
    const other = yield* world()
    for (const change of [
      { access: { ...Monitor.callers, accountId: Make.bob } },
      { entryPoint: EntryPoint.canonical["v0.8"] },
      { chain: other.bundle("").chain },
      { prices: { maxFeePerGas: 100n, maxPriorityFeePerGas: 100n, legacy: true } },
      { aggregate },
      { alone: true }
    ]) {
      const later = yield* world()
      expect(yield* later.together(later.bundle("a"), later.bundle("b", change), later.bundle("c"))).toBe(
        "a c | b"
      )
      const first = yield* world()
      expect(yield* first.together(first.bundle("a", change), first.bundle("b"))).toBe("a | b")
    }
  })

  test("go as far as the gas of one transaction reaches, in their order", function* () {
    const two = yield* world()
    yield* two.together(two.bundle("a"), two.bundle("b"))
    const [{ gasLimit } = { gasLimit: 0n }] = two.signed
    const three = yield* world()
    const bundles = ["a", "b", "c"].map((name) => three.bundle(name, { gasBound: gasLimit }))
    expect(yield* three.together(...bundles)).toBe("a b | c")
    expect(three.signed[0]?.gasLimit).toBe(gasLimit)
  })
})

describe("a bundle in company", () => {
  const good = { success: true, charged: 10_000_000n }
  /** Every op goes through and pays, but for what is said of some. */
  const simulation =
    (...others: ReadonlyArray<Pick<SimulatedOp, "index"> & Partial<SimulatedOp>>): Simulation =>
    (ops) =>
      Effect.succeed(
        ops.map((index) => ({ ...good, index, ...others.find((other) => other.index === index) }))
      )
  const ops = (...of: ReadonlyArray<number>) => ({ ops: of.map(signedOp) })

  test("pays what layer 1 asks too, at the present base fee, or at the highest price", function* () {
    const paying = simulation({ index: 1, charged: 300_000n })
    // 300,000 gas are charged, 100,000 are used with a margin of a hundredth; 11 wei: base fee and tip, 100: at most.
    for (const [baseFee, gasPrice] of [
      [1n, 11n],
      [1_000n, 100n],
      [null, 100n]
    ] as const) {
      // A multiple of 5: the bound of the fee is not rounded.
      const most = ((gasPrice * (30_000_000n - 10_100_000n)) / 505n) * 5n
      const sent = (fee: bigint) =>
        Effect.flatMap(world({ simulation: paying, baseFee }), ({ bundle, outcomes }) =>
          outcomes(bundle("a", { ...ops(1), access: Monitor.service, l1Fee: L1Fee.bound(fee) }))
        )
      expect([yield* sent(most), yield* sent(most + 5n)]).toEqual(["sent: a", "unpaid: "])
    }
  })

  test("of which one op would fail is refused, and the others go without it", function* () {
    const { bundle, outcomes } = yield* world({ simulation: simulation({ index: 2, success: false }) })
    const bundles = [bundle("a", ops(1)), bundle("b", ops(2, 3)), bundle("c", ops(4))]
    expect(yield* outcomes(...bundles)).toBe("sent rejected sent: a c")
  })

  test("that does not pay the service's EOA does not go, and those that pay go without it", function* () {
    const of = (index: number) => ({ ...ops(index), access: Monitor.service })
    // What one pays too much may stand for what another owes: the sum decides.
    const rich = yield* world({ simulation: simulation({ index: 2, charged: 0n }) })
    expect(yield* rich.outcomes(rich.bundle("a", of(1)), rich.bundle("b", of(2)))).toBe("sent sent: a b")
    const poor = yield* world({
      simulation: simulation({ index: 1, charged: 150_000n }, { index: 2, charged: 0n })
    })
    expect(yield* poor.outcomes(poor.bundle("b", of(2)), poor.bundle("a", of(1)))).toBe("unpaid sent: a")
  })

  test("for which the EOA has too little goes alone where that is enough", function* () {
    const { bundle, outcomes } = yield* world({
      refusal: ({ length }) => (length > 1 ? new NonceManager.LaneFunds({ missing: 1n }) : null)
    })
    expect(yield* outcomes(bundle("a", ops(1)), bundle("b", ops(2)))).toBe("sent sent: a | b")
  })
})

describe("a bundle", () => {
  /** What happens to one that nobody waits for any more since its lane, its simulation or its key was asked. */
  const abandoned = (
    since: "lane" | "simulation" | "key",
    tells: (asking: Effect.Effect<void>) => Tells = () => ({})
  ) =>
    Effect.gen(function* () {
      const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const asking = Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer))
      const { bundle, bundler, mayGo, transactions } = yield* world(tells(asking))
      const begin = (name: string, index: number) =>
        Effect.forkChild(bundler.submit(bundle(name, { ops: [signedOp(index)] })))
      const gone = yield* begin("gone", 1)
      const before = since === "key" ? null : yield* begin("other", 2)
      yield* Time.adjust("1 second")
      if (since !== "lane") {
        yield* Deferred.succeed(mayGo, undefined)
        yield* Deferred.await(asked)
      }
      yield* Fiber.interrupt(gone)
      const other = before ?? (yield* begin("other", 2))
      yield* Time.adjust("1 second")
      yield* Deferred.succeed(answer, undefined)
      yield* Deferred.succeed(mayGo, undefined)
      yield* Time.adjust("1 second")
      yield* Fiber.join(other)
      return transactions()
    })

  test("that nobody waits for any more does not go, unless its key was asked: then none behind it is lost", function* () {
    expect(yield* abandoned("lane")).toBe("other")
    const simulation =
      (asking: Effect.Effect<void>): Simulation =>
      (ops) =>
        Effect.as(
          asking,
          ops.map((index) => ({ index, success: true, charged: 0n }))
        )
    expect(yield* abandoned("simulation", (asking) => ({ simulation: simulation(asking) }))).toBe("other")
    expect(yield* abandoned("key", (signing) => ({ signing }))).toBe("gone | other")
  })

  test("is signed with what was read of its EOA, carries its ops, and is watched", function* () {
    const { bundle, chain, nodes, signed, together, wanted, watched } = yield* world({
      balance: Effect.succeed(123n),
      latest: 6n,
      drainedTo: [4n]
    })
    yield* together(bundle("a", { ops: [signedOp(2)], l1Fee: 9n }))
    expect(signed).toMatchObject([
      {
        ops: [{ requestId: "a", index: 2, userOpHash: Make.word(2), entryPoint }],
        direct: null,
        to: entryPoint,
        value: 0n,
        l1Fee: 9n,
        chainNonce: 6n,
        drainedTo: 4n,
        balance: 123n
      }
    ])
    expect(wanted).toMatchObject([{ ...Make.lane, route: entryPoint, below: Monitor.profile.maxInFlight }])
    expect([watched, nodes]).toEqual([[0n], [chain]])
  })

  test("has the gas that it used when it was tried, when that is more than its ops declare", function* () {
    const simulation: Simulation = () => Effect.succeed([{ index: 1, success: true, charged: 0n }])
    const { bundle, signed, together } = yield* world({ simulation })
    const { op, ...rest } = signedOp(1)
    const small = { ...op, callGasLimit: 1n, verificationGasLimit: 1n, preVerificationGas: 1n }
    yield* together(bundle("a", { ops: [{ ...rest, op: small }] }))
    expect(signed[0]?.gasLimit).toBe(100_000n)
  })

  test("is told why it does not go, and runs again where the journal knows of another route", function* () {
    const silent = new ChainRpcError({ reason: "unreachable", origin: "any", message: "down" })
    const keyThat = (reason: "refused" | "unavailable") => ({
      refusal: () => new SignerError({ reason, message: "no" })
    })
    const routes = [new NonceManager.OtherRoute(Make.lane)]
    for (const [tells, outcome] of [
      [{ balance: Effect.fail(silent) }, "nodeUnreachable: "],
      [keyThat("refused"), "signerRefused: "],
      [keyThat("unavailable"), "signerUnavailable: "],
      [{ refusal: () => routes.pop() ?? null }, "sent: a"]
    ] as const) {
      const { bundle, outcomes } = yield* world(tells)
      expect(yield* outcomes(bundle("a"))).toBe(outcome)
    }
  })

  test("that a defect has ended is not sent later, and the lane goes on", function* () {
    const { bundle, bundler, mayGo, transactions } = yield* world({ defects: [new Error("broken")] })
    yield* Deferred.succeed(mayGo, undefined)
    expect(Exit.isFailure(yield* Effect.exit(bundler.submit(bundle("a"))))).toBe(true)
    yield* bundler.submit(bundle("b"))
    expect(transactions()).toBe("b")
  })

  test("of whose bytes it is not known whether they were stored is not signed once more", function* () {
    const refusals = [new JournalError({ message: "away" })]
    const { attempts, bundle, bundler, mayGo } = yield* world({ refusal: () => refusals.pop() ?? null })
    yield* Deferred.succeed(mayGo, undefined)
    expect(Exit.isFailure(yield* Effect.exit(bundler.submit(bundle("a"))))).toBe(true)
    yield* Time.adjust("1 second")
    expect(attempts).toEqual([["a"]])
  })
})

describe("a creation of a wallet", () => {
  const creation = (index: number) => ({
    ops: [{ ...signedOp(index), op: { ...signedOp(index).op, initCode: Hex.unsafe("0x1234") } }]
  })
  const called = (inFlight: InFlight.InFlight) =>
    inFlight.add(
      Monitor.recordOf(99, Monitor.callers, {
        ops: [{ requestId: "r", index: 0, userOpHash: Make.word(9), entryPoint }]
      })
    )

  test("goes behind no call that is on its way; calls behind it wait with it, those before it do not", function* () {
    const { bundle, inFlight, together, wanted } = yield* world()
    called(inFlight)
    const bundles = [bundle("a"), bundle("b", creation(1)), bundle("c", { ops: [signedOp(2)] })]
    expect(yield* together(...bundles)).toBe("a | b c")
    expect(wanted.map(({ creates }) => creates)).toEqual([false, true])
  })

  test("goes with others in one transaction where no call is on its way, and is no call itself", function* () {
    const { bundle, inFlight, signed, together } = yield* world()
    expect(yield* together(bundle("a"), bundle("b", creation(1)))).toBe("a b")
    inFlight.add(Monitor.recordOf(0, Monitor.callers, { ops: signed[0]?.ops ?? [] }))
    expect(inFlight.isCalling(Make.lane)).toBe(true)
    const alone = yield* world()
    yield* alone.together(alone.bundle("b", creation(1)))
    alone.inFlight.add(Monitor.recordOf(0, Monitor.callers, { ops: alone.signed[0]?.ops ?? [] }))
    expect(alone.inFlight.isCalling(Make.lane)).toBe(false)
  })
})
