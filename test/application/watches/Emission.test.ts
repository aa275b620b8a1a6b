import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { FoundLog } from "../../../src/application/ports/chain/ChainRpc.js"
import type { PartOfBlock, WatchedEvent } from "../../../src/application/ports/Watches.js"
import * as Emission from "../../../src/application/watches/Emission.js"
import * as Followed from "../../../src/application/watches/Followed.js"
import * as Matching from "../../../src/application/watches/Matching.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { test } from "../../support/Test.js"
import * as Following from "./Following.js"

const hash = Hex.unsafe32(`0x${"7".repeat(64)}`)

const transfer = Following.transfer(1)

const logOf = (logIndex: number, blockNumber = 1n): FoundLog => ({
  ...transfer,
  data: transfer.data ?? Hex.empty,
  logIndex,
  txHash: hash,
  blockHash: hash,
  blockNumber
})

const indexOf = (numbers: ReadonlyArray<number>, spec = Following.spec) =>
  Effect.gen(function* () {
    const index = new Matching.Index()
    for (const watch of numbers) index.add(yield* Followed.match({ watch, cursor: 1, fromBlock: 0n, spec }))
    return index
  })

const upTo = (many: number) => Array.from({ length: many }, (_, n) => n + 1)

/** All steps that deliver one block. */
const steps = (index: Matching.Index, logs: ReadonlyArray<FoundLog>, bounds: Emission.Bounds) =>
  Effect.gen(function* () {
    const told: Array<ReadonlyArray<WatchedEvent>> = []
    let after: PartOfBlock | undefined
    do {
      const step = yield* Emission.step(index, { first: 1n, logs, after }, bounds)
      told.push(step.events)
      after = step.part
    } while (after !== undefined)
    return told
  })

const placesOf = (events: ReadonlyArray<WatchedEvent>) =>
  events.map(({ logIndex, watch }) => `${logIndex} ${watch}`)

describe("the events of a block in one step", () => {
  test("are bounded, however many watches one log matches", function* () {
    const index = yield* indexOf(upTo(10_000))
    const bounds = { events: 300, characters: 1_000_000 }
    const first = yield* Emission.step(
      index,
      { first: 1n, logs: [logOf(0), logOf(1)], after: undefined },
      bounds
    )
    expect([first.events.length, first.until]).toEqual([300, null])
    expect(first.part).toEqual({ hash, logIndex: 0, watch: 300 })
  })

  test("are the same for all step sizes and watch orders", function* () {
    const index = yield* indexOf([7, 3, 12, 1, 5])
    const logs = upTo(40).map((n) => logOf(n))
    const wanted = logs.flatMap(({ logIndex }) => [1, 3, 5, 7, 12].map((watch) => `${logIndex} ${watch}`))
    for (const events of [1, 2, 7, 199, 200, 201]) {
      const told = yield* steps(index, logs, { events, characters: 1_000_000 })
      expect(placesOf(told.flat())).toEqual(wanted)
      expect(told).toHaveLength(Math.ceil(200 / events))
    }
  })

  test("wait whole for the next step while earlier blocks are delivered", function* () {
    const index = yield* indexOf([1, 2])
    const logs = [logOf(0, 1n), logOf(0, 4n), logOf(1, 4n)]
    const stepOf = (events: number, first = 1n) =>
      Emission.step(index, { first, logs, after: undefined }, { events, characters: 1_000_000 })
    const [three, two, six] = yield* Effect.all([stepOf(3), stepOf(2), stepOf(6)])
    expect([three.events.length, three.until, three.part]).toEqual([2, 3n, undefined])
    expect([two.events.length, two.until, two.part]).toEqual([2, 3n, undefined])
    expect([six.events.length, six.until, six.part]).toEqual([6, null, undefined])
    // Empty blocks precede the first block that exceeds one step.
    const late = yield* Emission.step(
      index,
      { first: 2n, logs: logs.slice(1), after: undefined },
      { events: 3, characters: 1_000_000 }
    )
    expect([late.events.length, late.until, late.part]).toEqual([0, 3n, undefined])
  })
})
