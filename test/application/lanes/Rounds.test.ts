import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import * as Rounds from "../../../src/application/lanes/Rounds.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { BusyLane } from "../../../src/application/ports/journal/Records.js"
import type { Lane } from "../../../src/application/ports/journal/Transactions.js"
import { type Signer, SignerError } from "../../../src/application/ports/Signers.js"
import * as Make from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const key = { clientId: "key 1" }
const lanes = [1, 2, 3].map((at): Lane => ({ chainId: 1n, signer: Make.address(at) }))
const [one, two, three] = lanes as [Lane, Lane, Lane]
const nameOf = ({ signer }: Lane) => `lane ${lanes.findIndex((lane) => lane.signer === signer) + 1}`

/** Rounds over a journal that the test changes; `told`: effects since it was last read. */
const world = Effect.gen(function* () {
  const state = {
    busy: [one, two, three] as ReadonlyArray<Lane>,
    owned: new Set([one, two]),
    claimed: new Set([one, two]),
    isAway: false,
    keyOf: (lane: Lane) =>
      Effect.succeed({ address: lane.signer } as Signer) as Effect.Effect<Signer, SignerError>
  }
  const told: Array<string> = []
  const tell = (text: string) => Effect.sync(() => void told.push(text))
  const busyOf = (lane: Lane): BusyLane => ({ lane, accountId: Make.alice, key })
  const start = Rounds.make({
    laneJournal: {
      busy: Effect.suspend(() =>
        state.isAway
          ? Effect.fail(new JournalError({ message: "away" }))
          : Effect.succeed(state.busy.map(busyOf))
      )
    },
    requestJournal: {
      going: Effect.succeed([{ accountId: Make.alice, requests: 2, elements: 3 }]),
      unanswered: (lane) => Effect.succeed([`ended in ${nameOf(lane)}`])
    },
    claims: {
      keyed: (lane, isKeyed) => void (isKeyed || told.push(`keyless: ${nameOf(lane)}`)),
      take: (lane) =>
        nameOf(lane) === "lane 3"
          ? Effect.fail(new JournalError({ message: "the row cannot be read" }))
          : Effect.sync(() => state.claimed.has(lane))
    },
    counted: (open) => void told.push(`counted: ${open[0]?.requests}`),
    owns: (lane) => state.owned.has(lane),
    signerOf: () => state.keyOf(one),
    wake: (lane) => tell(`woken: ${nameOf(lane)}`),
    affected: (requestIds) => tell(`affected: ${requestIds.join()}`),
    nudged: Effect.never
  })
  const read = () => told.splice(0).sort()
  return { start: Effect.flatMap(Effect.scope, start), read, state }
})

describe("rounds", () => {
  test("wake this process's lanes and notify the waiters of their finished requests", function* () {
    const { read, start, state } = yield* world
    state.busy = [one, three]
    yield* start
    expect(read()).toContain("counted: 2")
    yield* Time.adjust("100 millis")
    expect(read()).toEqual(["affected: ended in lane 1", "woken: lane 1"])
    yield* Time.adjust("4 seconds")
    expect(read()).toEqual([])
    yield* Time.adjust("1 seconds")
    expect(read()).toEqual(["affected: ended in lane 1", "counted: 2", "woken: lane 1"])
  })

  test("wake a lane within a second of its assignment, and once more when another process gets it", function* () {
    const { read, start, state } = yield* world
    state.busy = [two]
    state.claimed.delete(two)
    yield* start
    yield* Time.adjust("4100 millis")
    expect(read().filter((text) => !text.startsWith("counted"))).toEqual([
      "keyless: lane 2",
      "keyless: lane 2",
      "keyless: lane 2",
      "keyless: lane 2",
      "keyless: lane 2"
    ])
    state.claimed.add(two)
    yield* Time.adjust("1 seconds")
    expect(read()).toContain("woken: lane 2")
    state.claimed.delete(two)
    yield* Time.adjust("1 seconds")
    expect(read()).toEqual(["woken: lane 2"])
    yield* Time.adjust("10 seconds")
    expect(read()).not.toContain("woken: lane 2")
  })

  test("continue when the journal or one lane fails", function* () {
    const lines = yield* Log.listen
    const { read, start, state } = yield* world
    state.owned.add(three)
    state.isAway = true
    yield* start
    yield* Time.adjust("10 seconds")
    expect(read()).not.toContain("woken: lane 1")
    state.isAway = false
    yield* Time.adjust("1 seconds")
    expect(read()).toContain("woken: lane 1")
    expect(lines.map(({ message }) => message).filter((message) => message.includes("failed"))).toEqual([
      "journal read failed; retrying",
      "lane round failed; retrying",
      "over: journal read failed; retrying"
    ])
  })

  test("report that a lane's key is not configured, but not that it is silent", function* () {
    const lines = yield* Log.listen
    const keys = [
      ["unavailable", []],
      ["notConfigured", ["keyless: lane 1"]]
    ] as const
    for (const [reason, keyless] of keys) {
      const { read, start, state } = yield* world
      state.busy = [one]
      state.keyOf = () => Effect.fail(new SignerError({ reason, message: "none" }))
      yield* start
      yield* Time.adjust("100 millis")
      expect(read().filter((text) => text.startsWith("keyless"))).toEqual(keyless)
    }
    expect(lines.map(({ level }) => level)).toEqual(["ERROR"])
  })

  test("treat a key that does not answer as present", function* () {
    const { read, start, state } = yield* world
    state.busy = [one]
    state.keyOf = () => Effect.never
    yield* start
    yield* Time.adjust("5100 millis")
    expect(read()).toContain("woken: lane 1")
  })
})
