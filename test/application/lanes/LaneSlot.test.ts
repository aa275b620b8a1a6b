import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import * as MemoryRpc from "../../../src/adapters/memory/ChainRpc.js"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import * as LaneSlot from "../../../src/application/lanes/LaneSlot.js"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import {
  type BlockTag,
  type ChainClient,
  ChainRpcError
} from "../../../src/application/ports/chain/ChainRpc.js"
import type { Route, TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"
import { law } from "../../support/Law.js"

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
        const fiber = yield* Effect.fork(
          slots.take({ ...lane, route, below, arrival, confirmedNonce }, () => go)
        )
        yield* TestClock.adjust(1)
        return fiber
      }),
    mine: (nonce: number) =>
      Effect.suspend(() => {
        const record = sent[nonce]
        if (record !== undefined) inFlight.remove(record)
        return TestClock.adjust(1)
      })
  }
})

describe("the slots of a lane", () => {
  law("are at once for work of one route, as long as there is room", function* () {
    const { mine, slots, went, work } = yield* start
    for (const name of ["a", "b", "c"]) yield* work(name, Make.entryPoint)
    expect(went).toEqual(["a", "b"])
    expect(slots.waiting(Make.lane)).toBe(1)
    yield* mine(0)
    expect(went).toEqual(["a", "b", "c"])
    expect(slots.waiting(Make.lane)).toBe(0)
  })

  law("of another route are when nothing is in flight", function* () {
    const { mine, went, work } = yield* start
    yield* work("a", Make.entryPoint)
    yield* work("b", Make.entryPoint)
    yield* work("other", Make.otherEntryPoint)
    yield* mine(1)
    expect(went).toEqual(["a", "b"])
    yield* mine(0)
    expect(went).toEqual(["a", "b", "other"])
    yield* work("direct", "direct")
    expect(went).toEqual(["a", "b", "other"])
    yield* mine(2)
    expect(went.at(-1)).toBe("direct")
  })

  law("go by arrival between routes: new work overtakes no work that waits for another one", function* () {
    const { mine, went, work } = yield* start
    yield* work("a", Make.entryPoint)
    yield* work("direct", "direct")
    yield* work("late", Make.entryPoint)
    expect(went).toEqual(["a"])
    yield* mine(0)
    expect(went).toEqual(["a", "direct"])
    yield* mine(1)
    expect(went).toEqual(["a", "direct", "late"])
  })

  law("that are given up keep nobody waiting", function* () {
    const { went, work } = yield* start
    yield* work("a", Make.entryPoint)
    const other = yield* work("other", Make.otherEntryPoint)
    yield* work("b", Make.entryPoint)
    expect(went).toEqual(["a"])
    yield* Fiber.interrupt(other)
    yield* TestClock.adjust(1)
    expect(went).toEqual(["a", "b"])
  })

  law("of one lane wait for no work of another, of the same EOA or on the same chain", function* () {
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

  law("come when the journal says so, whatever this process waits for and without a node", function* () {
    const { settleElsewhere, went, work } = yield* start
    const silent = new ChainRpcError({ reason: "unreachable", origin: "http://node", message: "down" })
    yield* work("a", Make.entryPoint)
    yield* work("other", Make.otherEntryPoint, Make.lane, Effect.fail(silent))
    yield* TestClock.adjust("10 seconds")
    expect(went).toEqual(["a"])
    settleElsewhere()
    yield* TestClock.adjust("1 seconds")
    expect(went).toEqual(["a", "other"])
  })

  law(
    "are taken again when the journal knows of another route that this process does not watch",
    function* () {
      const journal = Journals.methodsOf(yield* InMemory.makeJournal)
      const slots = LaneSlot.make(NonceManager.make(journal), InFlight.make())
      yield* journal.accept(Make.acceptance("d1", []))
      yield* journal.allocate(Make.allocation("d1", { direct: "d1" }))
      yield* journal.recordSigned(Make.signed(0n))
      let tries = 0
      const fiber = yield* Effect.fork(
        slots.take(
          {
            ...Make.lane,
            route: Make.entryPoint,
            below,
            arrival: slots.arrive(),
            confirmedNonce: Effect.succeed(0n)
          },
          () =>
            Effect.suspend(() => {
              tries += 1
              return tries === 1 ? new NonceManager.OtherRoute(Make.lane) : Effect.succeed("sent")
            })
        )
      )
      yield* TestClock.adjust("10 seconds")
      expect(tries).toBe(1)
      yield* journal.settle(Make.mined(0n), [], false)
      yield* TestClock.adjust("1 seconds")
      expect(yield* Fiber.join(fiber)).toBe("sent")
      expect(tries).toBe(2)
    }
  )

  law("come when the chain says that what the journal waits for has lost its nonce", function* () {
    const journal = Journals.methodsOf(yield* InMemory.makeJournal)
    const slots = LaneSlot.make(NonceManager.make(journal), InFlight.make())
    yield* journal.accept(Make.acceptance("d1", []))
    yield* journal.allocate(Make.allocation("d1", { direct: "d1" }))
    yield* journal.recordSigned(Make.signed(0n))
    const used = { count: 0n }
    const given: Array<bigint> = []
    const fiber = yield* Effect.fork(
      slots.take(
        {
          ...Make.lane,
          route: Make.entryPoint,
          below,
          arrival: slots.arrive(),
          confirmedNonce: Effect.sync(() => used.count)
        },
        (drainedTo) =>
          Effect.suspend(() => {
            given.push(drainedTo)
            return drainedTo === 0n ? new NonceManager.OtherRoute(Make.lane) : Effect.void
          })
      )
    )
    yield* TestClock.adjust("10 seconds")
    expect(given).toEqual([0n])
    used.count = 1n
    yield* TestClock.adjust("1 seconds")
    yield* Fiber.join(fiber)
    expect(given).toEqual([0n, 1n])
  })
})

describe("the nonce of an EOA that counts as used", () => {
  const client = (height: bigint | null) =>
    Effect.map(MemoryRpc.make({ chainId: Make.chainId }), (memory) => {
      const asked: Array<BlockTag> = []
      const chain: ChainClient = {
        ...memory.client("http://node"),
        block: (tag) =>
          Effect.succeed(
            height === null || tag !== "latest"
              ? null
              : { number: height, hash: Make.word(1), timestamp: 0, gasLimit: 1n, baseFeePerGas: 1n }
          ),
        transactionCount: (_, tag) => Effect.sync(() => BigInt(asked.push(tag)))
      }
      const nonceAt = (confirmations: number) =>
        LaneSlot.confirmedNonce(chain, Make.lane.signer, { confirmations })
      return { asked, nonceAt }
    })

  law("is that at the latest block where one confirmation is enough", function* () {
    const { asked, nonceAt } = yield* client(10n)
    expect(yield* nonceAt(1)).toBe(1n)
    expect(asked).toEqual(["latest"])
  })

  law("is that at the block which has all confirmations, itself counted", function* () {
    const { asked, nonceAt } = yield* client(10n)
    yield* nonceAt(3)
    yield* nonceAt(11)
    expect(asked).toEqual([8n, 0n])
  })
})

law("work that creates a wallet waits until no op that calls contracts is on its way", function* () {
  const inFlight = InFlight.make()
  const lanes = {
    ...NonceManager.make(Journals.methodsOf(yield* InMemory.makeJournal)),
    admits: () => Effect.succeed(true)
  }
  const slots = LaneSlot.make(lanes, inFlight)
  const [call, created] = [recordOf(0, Make.entryPoint), recordOf(1, Make.entryPoint)]
  inFlight.add(call)
  inFlight.noteCreation(created)
  inFlight.add(created)
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
  const fiber = yield* Effect.fork(slots.take({ ...work, creates: true }, () => go))
  yield* TestClock.adjust("10 seconds")
  expect(went).toBe(false)
  inFlight.remove(call)
  yield* Fiber.join(fiber)
  expect(went).toBe(true)
})
