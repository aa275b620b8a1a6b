import { describe, expect } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import * as MemoryRpc from "../../../src/adapters/memory/ChainRpc.js"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import * as LaneSlot from "../../../src/application/lanes/LaneSlot.js"
import * as Entry from "../../../src/application/lanes/monitor/Entry.js"
import * as WatchedLane from "../../../src/application/lanes/monitor/WatchedLane.js"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import {
  type BlockTag,
  type ChainClient,
  ChainRpcError
} from "../../../src/application/ports/chain/ChainRpc.js"
import type { Route, TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const below = 2
const none = Effect.succeed(0n)

const recordOf = (nonce: number, route: Route): TransactionRecord => ({
  ...Make.lane,
  nonce: BigInt(nonce),
  access: Make.access({ rpc: Redacted.make("http://node") }),
  state: "signed",
  versions: [],
  signedAt: 0,
  ops:
    route === null || route === "direct"
      ? []
      : [{ requestId: "r", index: 0, userOpHash: Make.word(1), entryPoint: route }],
  direct: route === "direct" ? "r" : null,
  mined: null
})

/** A lane whose work sends a transaction that is in flight until it is mined by hand. */
const start = Effect.gen(function* () {
  const inFlight = InFlight.make()
  const elsewhere = { settled: false }
  const lanes: NonceManager.NonceManager = {
    ...NonceManager.make(Journals.methodsOf(yield* InMemory.makeJournal)),
    admits: (lane, route) => Effect.sync(() => elsewhere.settled || inFlight.admits(lane, route))
  }
  const slots = LaneSlot.make(lanes, inFlight)
  const sent: Array<TransactionRecord> = []
  const went: Array<string> = []
  return {
    went,
    slots,
    /** From now on another process has settled all that this one watches. */
    settleElsewhere: () => {
      elsewhere.settled = true
    },
    /** Work of that name, of one route; it has arrived when this returns. The chain is asked by `confirmedNonce`. */
    work: (
      name: string,
      route: Route,
      lane = Make.lane,
      confirmedNonce: LaneSlot.Work["confirmedNonce"] = none
    ) =>
      Effect.gen(function* () {
        const arrival = slots.arrive()
        const go = Effect.sync(() => {
          const record = { ...recordOf(sent.length, route), ...lane }
          sent.push(record)
          went.push(name)
          inFlight.add(record)
        })
        const fiber = yield* Effect.forkChild(
          slots.take({ ...lane, route, below, arrival, confirmedNonce }, () => go)
        )
        yield* Time.adjust(1)
        return fiber
      }),
    mine: (nonce: number) =>
      Effect.suspend(() => {
        const record = sent[nonce]
        if (record !== undefined) inFlight.remove(record)
        return Time.adjust(1)
      })
  }
})

describe("the slots of a lane", () => {
  test("are at once for work of one route, as long as there is room", function* () {
    const { mine, slots, went, work } = yield* start
    for (const name of ["a", "b", "c"]) yield* work(name, Make.entryPoint)
    expect([went, slots.waiting(Make.lane)]).toEqual([["a", "b"], 1])
    yield* mine(0)
    expect([went, slots.waiting(Make.lane)]).toEqual([["a", "b", "c"], 0])
  })

  test("of another route are when nothing is in flight, and of a transaction that only fills a nonce at once", function* () {
    const { mine, went, work } = yield* start
    yield* work("a", Make.entryPoint)
    yield* work("filler", null)
    yield* work("other", Make.otherEntryPoint)
    yield* mine(1)
    expect(went).toEqual(["a", "filler"])
    yield* mine(0)
    yield* work("direct", "direct")
    expect(went).toEqual(["a", "filler", "other"])
    yield* mine(2)
    expect(went.at(-1)).toBe("direct")
  })

  test("go by arrival between routes: new work overtakes no work that waits, unless that is given up", function* () {
    const { mine, slots, went, work } = yield* start
    yield* work("a", Make.entryPoint)
    yield* work("direct", "direct")
    const other = yield* work("other", Make.otherEntryPoint)
    yield* work("late", Make.entryPoint)
    yield* Fiber.interrupt(other)
    yield* Time.adjust(1)
    expect([went, slots.waiting(Make.lane)]).toEqual([["a"], 2])
    yield* mine(0)
    expect(went).toEqual(["a", "direct"])
    yield* mine(1)
    expect(went).toEqual(["a", "direct", "late"])
  })

  test("that are given up keep nobody waiting", function* () {
    const { went, work } = yield* start
    yield* work("a", Make.entryPoint)
    const other = yield* work("other", Make.otherEntryPoint)
    yield* work("b", Make.entryPoint)
    expect(went).toEqual(["a"])
    yield* Fiber.interrupt(other)
    yield* Time.adjust(1)
    expect(went).toEqual(["a", "b"])
  })

  test("of one lane wait for no work of another, of the same EOA or on the same chain", function* () {
    const { slots, went, work } = yield* start
    yield* work("a", Make.entryPoint)
    yield* work("direct", "direct")
    const lanes = [
      { ...Make.lane, chainId: Make.chainId + 1n },
      { ...Make.lane, signer: Make.address(77) }
    ]
    for (const lane of lanes) yield* work("apart", Make.entryPoint, lane)
    expect(went).toEqual(["a", "apart", "apart"])
    expect([Make.lane, ...lanes].map(slots.waiting)).toEqual([1, 0, 0])
  })

  test("come when the journal says so, whatever this process waits for and without a node", function* () {
    const { settleElsewhere, went, work } = yield* start
    const silent = new ChainRpcError({ reason: "unreachable", origin: "http://node", message: "down" })
    yield* work("a", Make.entryPoint)
    yield* work("other", Make.otherEntryPoint, Make.lane, Effect.fail(silent))
    yield* Time.adjust("10 seconds")
    expect(went).toEqual(["a"])
    settleElsewhere()
    yield* Time.adjust("1 seconds")
    expect(went).toEqual(["a", "other"])
  })

  test("are taken again once the journal has settled, or the chain given the nonce of, another route's transaction", function* () {
    for (const by of ["the journal", "the chain"]) {
      const journal = Journals.methodsOf(yield* InMemory.makeJournal)
      const slots = LaneSlot.make(NonceManager.make(journal), InFlight.make())
      yield* journal.acceptOps(Make.acceptance("d1", []))
      yield* journal.allocate(Make.allocation("d1", { direct: "d1" }))
      yield* journal.recordSigned(Make.signed(0n))
      let used = 0n
      const drained: Array<bigint> = []
      const work = {
        ...Make.lane,
        route: Make.entryPoint,
        below,
        arrival: slots.arrive(),
        confirmedNonce: Effect.sync(() => used)
      }
      const fiber = yield* Effect.forkChild(
        slots.take(work, (drainedTo) =>
          Effect.suspend(() =>
            drained.push(drainedTo) === 1 ? new NonceManager.OtherRoute(Make.lane) : Effect.void
          )
        )
      )
      yield* Time.adjust("10 seconds")
      expect(drained).toEqual([0n])
      if (by === "the chain") used = 1n
      else yield* journal.settle(Make.mined(0n), [], false)
      yield* Time.adjust("1 seconds")
      yield* Fiber.join(fiber)
      expect(drained, by).toEqual([0n, used])
    }
  })
})

test("the nonce of an EOA that counts as used is that at the block which has all confirmations, itself counted", function* () {
  const memory = yield* MemoryRpc.make({ chainId: Make.chainId })
  /** The nonce, and of which block it is, of a chain of that height. */
  const nonceAt = (height: bigint | null, confirmations: number) => {
    const asked: Array<BlockTag> = []
    const block = { number: height ?? 0n, hash: Make.word(1), timestamp: 0, gasLimit: 1n, baseFeePerGas: 1n }
    const chain: ChainClient = {
      ...memory.client("http://node"),
      block: (tag) => Effect.succeed(height === null || tag !== "latest" ? null : block),
      transactionCount: (_, tag) => Effect.sync(() => BigInt(asked.push(tag)))
    }
    const nonce = LaneSlot.confirmedNonce(chain, Make.lane.signer, { confirmations })
    return Effect.map(nonce, (count) => [count, ...asked])
  }
  expect(yield* nonceAt(10n, 1)).toEqual([1n, "latest"])
  expect(yield* nonceAt(10n, 3)).toEqual([1n, 8n])
  expect(yield* nonceAt(10n, 11)).toEqual([1n, 0n])
  // Before the chain has so many blocks there is none.
  expect(yield* nonceAt(10n, 12)).toEqual([0n])
  expect(yield* nonceAt(null, 3)).toEqual([0n])
})

test("work that creates a wallet waits until no op that calls contracts is on its way", function* () {
  const inFlight = InFlight.make()
  const lanes = {
    ...NonceManager.make(Journals.methodsOf(yield* InMemory.makeJournal)),
    admits: () => Effect.succeed(true)
  }
  const slots = LaneSlot.make(lanes, inFlight)
  const [call, created] = [recordOf(0, Make.entryPoint), recordOf(1, Make.entryPoint)]
  const lane = WatchedLane.make(inFlight)
  const profile = NetworkProfile.make({ chainId: call.chainId })
  const seen = { now: 0, taken: true, waited: 0 }
  inFlight.noteCreation(created)
  // Each is watched anew when its price was raised.
  for (const record of [call, created, call, created]) lane.put(Entry.make({ profile, record }, null, seen))
  let went = false
  const work = {
    ...Make.lane,
    route: Make.entryPoint,
    below: 9,
    arrival: slots.arrive(),
    confirmedNonce: none
  }
  const go = Effect.sync(() => {
    went = true
  })
  // What calls waits for nothing.
  yield* slots.take(work, () => Effect.void)
  const fiber = yield* Effect.forkChild(slots.take({ ...work, creates: true }, () => go))
  yield* Time.adjust("10 seconds")
  expect(went).toBe(false)
  lane.drop(call)
  yield* Fiber.join(fiber)
  expect(went).toBe(true)
})
