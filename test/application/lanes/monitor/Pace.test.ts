import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as InFlight from "../../../../src/application/lanes/InFlight.js"
import * as FollowedTransaction from "../../../../src/application/lanes/monitor/FollowedTransaction.js"
import * as Pace from "../../../../src/application/lanes/monitor/Pace.js"
import * as WatchedLane from "../../../../src/application/lanes/monitor/WatchedLane.js"
import type { TransactionRecord } from "../../../../src/application/ports/journal/Transactions.js"
import * as Make from "../../../support/journal/Make.js"
import * as Monitor from "../../../support/lanes/Monitor.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const { callers, recordOf } = Monitor
/** Mined transactions are settled immediately. */
const profile = { ...Monitor.profile, settledDepth: 1 }

const hashOf = (nonce: number) => Make.word(0x100 + nonce)

/** A monitor with one node; regular polls are a second apart. */
const lane = Effect.gen(function* () {
  const node = yield* Monitor.node("a")
  const { mined, monitor, submitted } = yield* Monitor.start({ operatorNode: () => Effect.succeed(null) })
  /** Receipt requests during this time. */
  const looks = (millis: number) =>
    Effect.gen(function* () {
      const before = node.looks
      yield* Time.adjust(millis)
      return node.looks - before
    })
  const give = (nonce: number, over: Partial<TransactionRecord> = {}) =>
    monitor.watch({ chain: node.chain, profile, record: recordOf(nonce, callers, over) })
  return { node, mined, submitted, looks, give }
})

/** A transaction that is visible this long after its submission. */
const minedAfter = ({ give, node }: Effect.Success<typeof lane>, nonce: number, millis: number) =>
  Effect.gen(function* () {
    yield* give(nonce)
    yield* Time.adjust(millis)
    node.shows.add(hashOf(nonce))
    yield* Time.adjust("3 seconds")
  })

describe("a transaction just given to a node", () => {
  test("is polled immediately, after a sixteenth of the interval, and at each doubling of its age", function* () {
    const { give, looks } = yield* lane
    yield* give(0)
    const seen: Array<number> = []
    for (const millis of [0, 62, 1, 61, 1, 124, 1, 249, 1, 499, 1, 999, 1]) seen.push(yield* looks(millis))
    expect(seen).toEqual([1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
  })

  test("is polled immediately while the lane rests, without the others", function* () {
    const { give, looks, mined, node } = yield* lane
    yield* give(0)
    yield* Time.adjust("5 seconds")
    node.shows.add(hashOf(1))
    yield* Time.adjust(300)
    yield* give(1)
    expect(yield* looks(0)).toBe(1)
    expect(mined.map(([nonce]) => nonce)).toEqual([1n])
    expect(yield* looks(699)).toBe(0)
    expect(yield* looks(1)).toBe(1)
  })
})

describe("a chain", () => {
  test("gets only regular polls if its last inclusion took longer than the first regular poll", function* () {
    const world = yield* lane
    yield* minedAfter(world, 0, 1_600)
    yield* world.give(1)
    expect(yield* world.looks(0)).toBe(1)
    expect(yield* world.looks(999)).toBe(0)
    expect(yield* world.looks(1)).toBe(1)
  })
})

it("a transaction with a shorter interval does not wait for the regular poll of earlier ones", () => {
  const pace = Pace.make()
  const lane = WatchedLane.make(InFlight.make())
  const hour = 3_600_000
  const put = (nonce: number, pollIntervalMillis: number) =>
    lane.put(
      FollowedTransaction.make(
        { profile: { ...profile, pollIntervalMillis }, record: recordOf(nonce, callers) },
        null,
        {
          now: 0,
          taken: true,
          waited: 0
        }
      )
    )
  const lookedAt = (now: number) => pace.turnOf(lane, now).length
  put(0, hour)
  expect(lookedAt(hour)).toBe(1)
  put(1, 1_000)
  expect([1, 1_000, 1_001].map((millis) => lookedAt(hour + millis))).toEqual([2, 0, 2])
})
