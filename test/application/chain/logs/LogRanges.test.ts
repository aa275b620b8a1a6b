import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import * as LogRanges from "../../../../src/application/chain/logs/LogRanges.js"
import type { BlockRange } from "../../../../src/application/chain/logs/LogRefusal.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import { test } from "../../../support/Test.js"
import { vendors } from "./Vendors.js"

interface FakeLog {
  readonly block: bigint
  readonly index: number
  readonly bytes?: number
}

/** The node's reply to a range: its logs, or a refusal. */
type Refuse = (range: BlockRange, held: ReadonlyArray<FakeLog>) => ChainRpcError | null

const refusal = (message: string, code = -32_000) =>
  new ChainRpcError({ reason: "rejected", origin: "https://n", message, rpcCode: code })

const bounds = { asks: 10_000, concurrency: 8, results: 100_000, bytes: 100_000 }

const chainOf = (counts: ReadonlyArray<number>, first = 0n): ReadonlyArray<FakeLog> =>
  counts.flatMap((count, at) =>
    Array.from({ length: count }, (_, index) => ({ block: first + BigInt(at), index }))
  )

/** Reads from a node that refuses as `refuse` says; replies arrive in a shuffled order. */
const read = (
  logs: ReadonlyArray<FakeLog>,
  range: BlockRange,
  refuse: Refuse,
  limits: Partial<LogRanges.Bounds> = {}
) =>
  Effect.gen(function* () {
    const asked: Array<BlockRange> = []
    let open = 0
    let most = 0
    let splits = 0
    const result = yield* Effect.result(
      LogRanges.read({
        range,
        bounds: { ...bounds, ...limits },
        bytesOf: ({ bytes = 1 }: FakeLog) => bytes,
        beforeSplit: Effect.sync(() => void splits++),
        ask: (part) =>
          Effect.gen(function* () {
            asked.push(part)
            most = Math.max(most, ++open)
            for (let turns = Number(part.from % 7n); turns >= 0; turns--) yield* Effect.yieldNow
            open--
            const held = logs.filter(({ block }) => block >= part.from && block <= part.to)
            const error = refuse(part, held)
            return error === null ? held : yield* error
          })
      })
    )
    return { result, asked, most, splits }
  })

const size = ({ from, to }: BlockRange) => Number(to - from + 1n)

describe("reading a range in parts", () => {
  test("applies a reported limit to all later ranges", function* () {
    const logs = chainOf(
      Array.from({ length: 5_000 }, () => 2),
      100n
    )
    const { asked, most, result, splits } = yield* read(logs, { from: 100n, to: 5_099n }, (part) =>
      size(part) > 500 ? refusal("exceed maximum block range: 500", -32_701) : null
    )
    expect(result).toEqual(Result.succeed(logs))
    expect(asked).toHaveLength(11)
    expect(most).toBe(8)
    expect(splits).toBe(1)
  })

  test("fails immediately on a node whose limit would take too many queries", function* () {
    const { asked, result } = yield* read(
      [],
      { from: 0n, to: 99_999n },
      (part) => (size(part) > 10 ? refusal("block range too large, max: 10") : null),
      { asks: 1_000 }
    )
    expect(result).toEqual(Result.fail(new LogRanges.TooManyAsks({ span: 10n })))
    expect(asked).toHaveLength(1)
  })

  test("queries as often as allowed and not once more", function* () {
    const refuse: Refuse = (part) => (size(part) > 10 ? refusal("block range too large, max: 10") : null)
    const ten = { from: 0n, to: 99n }
    const exact = yield* read([], ten, refuse, { asks: 11 })
    expect([exact.asked.length, Result.isSuccess(exact.result)]).toEqual([11, true])
    const above = yield* read([], { from: 0n, to: 100n }, refuse, { asks: 11 })
    expect(above.result).toEqual(Result.fail(new LogRanges.TooManyAsks({ span: 10n })))
  })

  test("ends with the node's own refusal when smaller parts do not help", function* () {
    const error = refusal("invalid api key")
    const { asked, result } = yield* read([], { from: 0n, to: 999n }, () => error)
    expect(result).toEqual(Result.fail(error))
    expect(asked).toHaveLength(1)
  })

  test("brings no more results than it may", function* () {
    const logs = chainOf(Array.from({ length: 100 }, () => 1))
    const refuse: Refuse = (part) => (size(part) > 10 ? refusal("block range too large, max: 10") : null)
    const exact = yield* read(logs, { from: 0n, to: 99n }, refuse, { results: 100 })
    expect(exact.result).toEqual(Result.succeed(logs))
    const above = yield* read(logs, { from: 0n, to: 99n }, refuse, { results: 99 })
    expect(above.result).toEqual(Result.fail(new LogRanges.TooManyResults({ of: "results" })))
  })

  test("returns at most the allowed bytes and stops querying there", function* () {
    const logs = chainOf(Array.from({ length: 100 }, () => 1)).map((log) => ({ ...log, bytes: 1_000 }))
    const refuse: Refuse = (part) => (size(part) > 1 ? refusal("block range too large, max: 1") : null)
    const exact = yield* read(logs, { from: 0n, to: 99n }, refuse, { bytes: 100_000 })
    expect(exact.result).toEqual(Result.succeed(logs))
    const above = yield* read(logs, { from: 0n, to: 99n }, refuse, { bytes: 10_000 })
    expect(above.result).toEqual(Result.fail(new LogRanges.TooManyResults({ of: "bytes" })))
    expect(above.asked.length).toBeLessThan(30)
  })

  it("returns every log once and in order, whatever the refusals and their words", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 120 }),
        fc.bigInt(0n, 10n ** 7n),
        fc.integer({ min: 1, max: 130 }),
        fc.integer({ min: 4, max: 60 }),
        fc.nat(),
        fc.array(fc.nat({ max: 2 * vendors.length }), { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        (counts, first, mostBlocks, mostResults, seed, words, lying) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const logs = chainOf(counts, first)
              let turn = 0
              const { most, result } = yield* read(
                logs,
                { from: first, to: first + BigInt(counts.length) - 1n },
                (part, held) => {
                  // In addition to its limits the node refuses at random; it always returns a single block.
                  const moody = (Number(part.from) * 31 + size(part) * 17 + seed) % 5 === 0
                  if (size(part) === 1 || (size(part) <= mostBlocks && held.length <= mostResults && !moody))
                    return null
                  const word = words[turn++ % words.length] ?? 0
                  const vendor = vendors[word % vendors.length]
                  if (vendor === undefined)
                    return new ChainRpcError({
                      reason: "unreachable",
                      origin: "https://n",
                      message: "https://n: no complete answer within 15000 ms"
                    })
                  const limit = lying ? 1 + ((seed + turn) % 200) : mostBlocks
                  const { code, message } = (word < vendors.length ? vendor.blocks : vendor.results)({
                    ...part,
                    limit
                  })
                  return refusal(message, code)
                }
              )
              expect(result).toEqual(Result.succeed(logs))
              expect(most).toBeLessThanOrEqual(bounds.concurrency)
            })
          )
      ),
      { numRuns: 150 }
    ))
})

it("the memory of a log is its data plus a fixed overhead", () => {
  const log = { address: Make.lane.signer, topics: [], data: Hex.unsafe("0x1234"), logIndex: 0 }
  expect(LogRanges.bytesOf(log)).toBe(1_030)
})
