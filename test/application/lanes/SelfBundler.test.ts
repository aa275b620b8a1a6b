import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
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

const entryPoint = EntryPoint.canonical["v0.7"]
const unasked = Effect.die(new Error("not asked for"))

const indexes = [0, 1, 2, 3, 4]
const senderOf = (index: number) => Make.address(0xaa0000 + index)

const signedOp = (index: number): Bundle["ops"][number] => ({
  index,
  userOpHash: Make.word(index),
  op: {
    sender: senderOf(index),
    nonce: BigInt(index),
    initCode: Hex.empty,
    callData: Hex.empty,
    callGasLimit: 50_000n,
    verificationGasLimit: 50_000n,
    preVerificationGas: 50_000n,
    maxFeePerGas: 100n,
    maxPriorityFeePerGas: 10n,
    paymasterAndData: Hex.empty,
    signature: Hex.empty
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
            (turn) => Effect.zipRight(Deferred.await(mayGo), turn) as never
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
      submitter: {
        address: Make.lane.signer,
        publicKey: "04",
        type: "PRIVATE_KEY",
        sign: () => unasked
      },
      prices: { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false },
      l1Fee: 0n,
      gasBound: 1_000_000n,
      gasOvershoot: Percent.zero,
      ...change
    })
    /** The requests of each transaction that is signed when all of them wait for the lane. */
    const together = (...bundles: ReadonlyArray<Bundle>) =>
      Effect.gen(function* () {
        const fibers = yield* Effect.forEach(bundles, (each) => Effect.fork(bundler.submit(each)))
        yield* TestClock.adjust("1 second")
        yield* Deferred.succeed(mayGo, undefined)
        yield* Fiber.joinAll(fibers)
        return signed.map(({ ops }) => ops.map(({ requestId }) => requestId))
      })
    /** The same, and what each of the requests is told. */
    const outcomes = (...bundles: ReadonlyArray<Bundle>) =>
      Effect.gen(function* () {
        const fibers = yield* Effect.forEach(bundles, (each) =>
          Effect.fork(
            Effect.match(bundler.submit(each), { onFailure: ({ reason }) => reason, onSuccess: () => "sent" })
          )
        )
        yield* TestClock.adjust("1 second")
        yield* Deferred.succeed(mayGo, undefined)
        const told = yield* Effect.forEach(fibers, Fiber.join)
        return { told, transactions: signed.map(({ ops }) => ops.map(({ requestId }) => requestId)) }
      })
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
      wanted,
      watched
    }
  })

describe("a nonce that a node tells", () => {
  const outcome = (tells: { readonly latest: bigint; readonly pending?: bigint }) =>
    Effect.gen(function* () {
      const { bundle, bundler, mayGo, signed } = yield* world(tells)
      yield* Deferred.succeed(mayGo, undefined)
      const told = yield* Effect.either(bundler.submit(bundle("r")))
      return Either.match(told, {
        onLeft: ({ message, reason }) => ({ reason, message, signed }),
        onRight: () => signed.map(({ chainNonce }) => chainNonce)
      })
    })
  const refused = {
    reason: "nodeFailed",
    message: expect.stringContaining("gives a nonce of the EOA that cannot be"),
    signed: []
  }

  it.scoped("is the pending one, and the latest where that is more", () =>
    Effect.gen(function* () {
      expect(yield* outcome({ latest: 5n, pending: 7n })).toEqual([7n])
      expect(yield* outcome({ latest: 5n, pending: 4n })).toEqual([5n])
    })
  )

  it.scoped(
    "is not believed when it is further ahead than any pool is deep: the lane would wait for ever",
    () =>
      Effect.gen(function* () {
        expect(yield* outcome({ latest: 5n, pending: 5n + 1_024n })).toEqual([5n + 1_024n])
        expect(yield* outcome({ latest: 5n, pending: 5n + 1_025n })).toMatchObject(refused)
      })
  )

  it.scoped("is not believed when no transaction can have it", () =>
    Effect.gen(function* () {
      const most = 2n ** 64n - 2n
      expect(yield* outcome({ latest: most })).toEqual([most])
      expect(yield* outcome({ latest: most + 1n })).toMatchObject(refused)
    })
  )
})

describe("bundles that wait for a lane", () => {
  const of = (account: typeof Make.alice) => ({ access: { ...Monitor.callers, accountId: account } })

  it.scoped("leave in one transaction, at the highest price of any", () =>
    Effect.gen(function* () {
      const { bundle, signed, together } = yield* world()
      const dearer = { prices: { maxFeePerGas: 120n, maxPriorityFeePerGas: 9n, legacy: false } }
      expect(yield* together(bundle("a"), bundle("b", dearer), bundle("c"))).toEqual([["a", "b", "c"]])
      expect(signed[0]?.prices).toEqual({ maxFeePerGas: 120n, maxPriorityFeePerGas: 10n, legacy: false })
    })
  )

  it.scoped("of the service's EOA are not sent when its node can not tell what they would pay it", () =>
    Effect.gen(function* () {
      const { bundle, bundler, mayGo, signed } = yield* world()
      yield* Deferred.succeed(mayGo, undefined)
      const failure = yield* Effect.flip(bundler.submit(bundle("a", { access: Monitor.service })))
      expect(failure).toMatchObject({ reason: "unpaid", gas: null })
      expect(signed).toEqual([])
    })
  )

  it.scoped("share none with those of another account, EntryPoint, node, or kind of price", () =>
    Effect.gen(function* () {
      const other = yield* world()
      for (const change of [
        of(Make.bob),
        { entryPoint: EntryPoint.canonical["v0.8"] },
        { chain: other.bundle("").chain },
        { prices: { maxFeePerGas: 100n, maxPriorityFeePerGas: 100n, legacy: true } }
      ]) {
        const { bundle, together } = yield* world()
        expect(yield* together(bundle("a"), bundle("b", change), bundle("c"))).toEqual([["a", "c"], ["b"]])
      }
    })
  )

  it.scoped("share none with one whose signature is that of all its ops, or that goes alone", () =>
    Effect.gen(function* () {
      const aggregate = { aggregator: Make.address(9), signature: Hex.empty, gas: 1n }
      for (const change of [{ aggregate }, { alone: true }]) {
        const later = yield* world()
        expect(
          yield* later.together(later.bundle("a"), later.bundle("b", change), later.bundle("c"))
        ).toEqual([["a", "c"], ["b"]])
        const first = yield* world()
        expect(yield* first.together(first.bundle("a", change), first.bundle("b"))).toEqual([["a"], ["b"]])
      }
    })
  )

  it.scoped("go as far as the gas of one transaction reaches, in their order", () =>
    Effect.gen(function* () {
      const two = yield* world()
      yield* two.together(two.bundle("a"), two.bundle("b"))
      const [{ gasLimit } = { gasLimit: 0n }] = two.signed
      const three = yield* world()
      const bundles = (gasBound: bigint) => ["a", "b", "c"].map((name) => three.bundle(name, { gasBound }))
      expect(yield* three.together(...bundles(gasLimit))).toEqual([["a", "b"], ["c"]])
      expect(three.signed[0]?.gasLimit).toBe(gasLimit)
    })
  )
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

  it.scoped("pays what layer 1 asks too, at the present base fee, or at the highest price", () =>
    Effect.gen(function* () {
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
        expect((yield* sent(most)).told).toEqual(["sent"])
        expect((yield* sent(most + 5n)).told).toEqual(["unpaid"])
      }
    })
  )

  it.scoped("of which one op would fail is refused, and the others go without it", () =>
    Effect.gen(function* () {
      const { bundle, outcomes } = yield* world({ simulation: simulation({ index: 2, success: false }) })
      expect(yield* outcomes(bundle("a", ops(1)), bundle("b", ops(2, 3)), bundle("c", ops(4)))).toEqual({
        told: ["sent", "rejected", "sent"],
        transactions: [["a", "c"]]
      })
    })
  )

  it.scoped("that does not pay the service's EOA does not go, and those that pay go without it", () =>
    Effect.gen(function* () {
      const { bundle, outcomes } = yield* world({ simulation: simulation({ index: 2, charged: 0n }) })
      const of = (index: number) => ({ ...ops(index), access: Monitor.service })
      // What one pays too much may stand for what another owes: the sum decides.
      const rich = yield* outcomes(bundle("a", of(1)), bundle("b", of(2)))
      expect(rich.told).toEqual(["sent", "sent"])
      const poor = yield* world({
        simulation: simulation({ index: 1, charged: 150_000n }, { index: 2, charged: 0n })
      })
      expect(yield* poor.outcomes(poor.bundle("b", of(2)), poor.bundle("a", of(1)))).toEqual({
        told: ["unpaid", "sent"],
        transactions: [["a"]]
      })
    })
  )

  it.scoped("for which the EOA has too little goes alone where that is enough", () =>
    Effect.gen(function* () {
      const { bundle, outcomes } = yield* world({
        refusal: ({ length }) => (length > 1 ? new NonceManager.LaneFunds({ missing: 1n }) : null)
      })
      expect(yield* outcomes(bundle("a", ops(1)), bundle("b", ops(2)))).toEqual({
        told: ["sent", "sent"],
        transactions: [["a"], ["b"]]
      })
    })
  )
})

describe("a bundle", () => {
  it.scoped("that nobody waits for any more does not go", () =>
    Effect.gen(function* () {
      const { bundle, bundler, mayGo, signed } = yield* world()
      const [gone, other] = yield* Effect.all([
        Effect.fork(bundler.submit(bundle("gone"))),
        Effect.fork(bundler.submit(bundle("other")))
      ])
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(gone)
      yield* Deferred.succeed(mayGo, undefined)
      yield* Fiber.join(other)
      expect(signed.map(({ ops }) => ops.map(({ requestId }) => requestId))).toEqual([["other"]])
    })
  )

  it.scoped("that nobody waits for any more since it was simulated does not go", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const simulation: Simulation = (ops) =>
        Effect.as(
          Effect.zipRight(Deferred.succeed(asked, undefined), Deferred.await(answer)),
          ops.map((index) => ({ index, success: true, charged: 0n }))
        )
      const { bundle, bundler, mayGo, signed } = yield* world({ simulation })
      const [gone, other] = yield* Effect.all([
        Effect.fork(bundler.submit(bundle("gone", { ops: [signedOp(1)] }))),
        Effect.fork(bundler.submit(bundle("other", { ops: [signedOp(2)] })))
      ])
      yield* TestClock.adjust("1 second")
      yield* Deferred.succeed(mayGo, undefined)
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(gone)
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.join(other)
      expect(signed.map(({ ops }) => ops.map(({ requestId }) => requestId))).toEqual([["other"]])
    })
  )

  it.scoped("that nobody waits for any more since its key was asked goes, and none behind it is lost", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const { bundle, bundler, mayGo, signed } = yield* world({
        signing: Effect.zipRight(Deferred.succeed(asked, undefined), Deferred.await(answer))
      })
      yield* Deferred.succeed(mayGo, undefined)
      const gone = yield* Effect.fork(bundler.submit(bundle("gone")))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(gone)
      const behind = yield* Effect.fork(bundler.submit(bundle("behind")))
      yield* TestClock.adjust("1 second")
      yield* Deferred.succeed(answer, undefined)
      yield* TestClock.adjust("1 second")
      expect(signed.map(({ ops }) => ops.map(({ requestId }) => requestId))).toEqual([["gone"], ["behind"]])
      yield* Fiber.join(behind)
    })
  )

  it.scoped("is signed with what was read of its EOA, carries its ops, and is watched", () =>
    Effect.gen(function* () {
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
      expect(watched).toEqual([0n])
      expect(nodes).toEqual([chain])
    })
  )

  it.scoped("has the gas that it used when it was tried, when that is more than its ops declare", () =>
    Effect.gen(function* () {
      const simulation: Simulation = () => Effect.succeed([{ index: 1, success: true, charged: 0n }])
      const { bundle, signed, together } = yield* world({ simulation })
      const { op, ...rest } = signedOp(1)
      const small = { ...op, callGasLimit: 1n, verificationGasLimit: 1n, preVerificationGas: 1n }
      yield* together(bundle("a", { ops: [{ ...rest, op: small }] }))
      expect(signed[0]?.gasLimit).toBe(100_000n)
    })
  )

  it.scoped("runs again when the journal knows of a transaction of another route", () =>
    Effect.gen(function* () {
      const refusals = [new NonceManager.OtherRoute(Make.lane)]
      const { attempts, bundle, outcomes } = yield* world({ refusal: () => refusals.pop() ?? null })
      expect((yield* outcomes(bundle("a"))).told).toEqual(["sent"])
      expect(attempts).toEqual([["a"], ["a"]])
    })
  )

  it.scoped("is told why it does not go: its node, or its key", () =>
    Effect.gen(function* () {
      const silent = new ChainRpcError({ reason: "unreachable", origin: "any", message: "down" })
      const keyThat = (reason: "refused" | "unavailable") => ({
        refusal: () => new SignerError({ reason, message: "no" })
      })
      for (const [tells, reason] of [
        [{ balance: Effect.fail(silent) }, "nodeUnreachable"],
        [keyThat("refused"), "signerRefused"],
        [keyThat("unavailable"), "signerUnavailable"]
      ] as const) {
        const { bundle, outcomes } = yield* world(tells)
        expect(yield* outcomes(bundle("a"))).toEqual({ told: [reason], transactions: [] })
      }
    })
  )

  it.scoped("that a defect has ended is not sent later, and the lane goes on", () =>
    Effect.gen(function* () {
      const { bundle, bundler, mayGo, signed } = yield* world({ defects: [new Error("broken")] })
      yield* Deferred.succeed(mayGo, undefined)
      expect(Exit.isFailure(yield* Effect.exit(bundler.submit(bundle("a"))))).toBe(true)
      yield* bundler.submit(bundle("b"))
      expect(signed.map(({ ops }) => ops.map(({ requestId }) => requestId))).toEqual([["b"]])
    })
  )

  it.scoped("of whose bytes it is not known whether they were stored is not signed once more", () =>
    Effect.gen(function* () {
      const refusals = [new JournalError({ message: "away" })]
      const { attempts, bundle, bundler, mayGo } = yield* world({ refusal: () => refusals.pop() ?? null })
      yield* Deferred.succeed(mayGo, undefined)
      const exit = yield* Effect.exit(bundler.submit(bundle("a")))
      expect(Exit.isFailure(exit)).toBe(true)
      yield* TestClock.adjust("1 second")
      expect(attempts).toEqual([["a"]])
    })
  )
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

  it.scoped(
    "goes behind no call that is on its way; calls behind it wait with it, those before it do not",
    () =>
      Effect.gen(function* () {
        const { bundle, inFlight, together, wanted } = yield* world()
        called(inFlight)
        const transactions = yield* together(
          bundle("a"),
          bundle("b", creation(1)),
          bundle("c", { ops: [signedOp(2)] })
        )
        expect(transactions).toEqual([["a"], ["b", "c"]])
        expect(wanted.map(({ creates }) => creates)).toEqual([false, true])
      })
  )

  it.scoped("goes with others in one transaction where no call is on its way, and is no call itself", () =>
    Effect.gen(function* () {
      const { bundle, inFlight, together } = yield* world()
      expect(yield* together(bundle("a"), bundle("b", creation(1)))).toEqual([["a", "b"]])
      const alone = yield* world()
      yield* alone.together(alone.bundle("b", creation(1)))
      alone.inFlight.add(Monitor.recordOf(0, Monitor.callers, { ops: alone.signed[0]?.ops ?? [] }))
      expect(alone.inFlight.isCalling(Make.lane)).toBe(false)
      called(inFlight)
      expect(inFlight.isCalling(Make.lane)).toBe(true)
    })
  )
})
