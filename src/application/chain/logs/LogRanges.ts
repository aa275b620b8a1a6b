import * as BigInts from "effect/BigInt"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { RawLog } from "../../../domain/evm/RawLog.js"
import type { ChainRpcError } from "../../ports/chain/ChainRpc.js"
import { type BlockRange, cure, sizeOf } from "./LogRefusal.js"

/** Limits for reading one range. */
export interface Bounds {
  readonly asks: number
  readonly concurrency: number
  /** Most elements in the result. */
  readonly results: number
  /** Most bytes of memory for the result: the node decides how long each element is. */
  readonly bytes: number
}

export interface Reading<A, R> {
  readonly range: BlockRange
  /** Queries the blocks' elements, in chain order. */
  readonly ask: (range: BlockRange) => Effect.Effect<ReadonlyArray<A>, ChainRpcError, R>
  readonly bytesOf: (result: A) => number
  readonly bounds: Bounds
  /** Runs once, before the range is read in more than one part. */
  readonly beforeSplit: Effect.Effect<void, ChainRpcError, R>
}

/** Approximate memory of a log and its derived data. */
export const bytesOf = ({ data }: RawLog): number => 1_024 + data.length

/** Consecutive ranges of `size` blocks; the last one has the remainder. */
const pieces = ({ from, to }: BlockRange, size: bigint): ReadonlyArray<BlockRange> => {
  const list: Array<BlockRange> = []
  for (let begin = from; begin <= to; begin += size) {
    list.push({ from: begin, to: BigInts.min(begin + size - 1n, to) })
  }
  return list
}

/**
 * Reads a range in as few parts as the node allows. A part that the node refuses as too large is split, and a limit
 * that the refusal names applies to all later parts. Until the first answer the parts run one after another, so that a
 * node which refuses everything is queried only as often as the range can be halved; then several run concurrently. The
 * results are in chain order, each block's from exactly one answer.
 */
export const read = Effect.fnUntraced(function* <A, R>({
  ask,
  beforeSplit,
  bounds,
  bytesOf,
  range
}: Reading<A, R>) {
  type Refused = ChainRpcError | TooManyAsks | TooManyResults
  type Parts = Effect.Effect<ReadonlyArray<A>, Refused, R>
  const permits = yield* Semaphore.make(bounds.concurrency)
  const splitting = yield* Effect.cached(beforeSplit)
  let asks = 0
  let found = 0
  let bytes = 0
  let answered = false
  /** The most blocks that the node takes per query, as far as known. */
  let span = sizeOf(range)

  const divide = (part: BlockRange, size: bigint): Parts =>
    Effect.suspend(() => {
      const parts = (sizeOf(part) + size - 1n) / size
      if (BigInt(asks) + parts > BigInt(bounds.asks)) return new TooManyAsks({ span: size })
      return Effect.andThen(splitting, several(pieces(part, size)))
    })

  const several = (parts: ReadonlyArray<BlockRange>): Parts => {
    const [first, ...rest] = parts
    if (first === undefined) return Effect.succeed([])
    if (answered)
      return Effect.map(Effect.forEach(parts, part, { concurrency: "unbounded" }), (lists) => lists.flat())
    return Effect.flatMap(part(first), (head) => Effect.map(several(rest), (tail) => [...head, ...tail]))
  }

  const part = (blocks: BlockRange): Parts =>
    Effect.suspend(() =>
      sizeOf(blocks) > span ? divide(blocks, span) : Effect.flatten(permits.withPermits(1)(turn(blocks)))
    )

  /** Runs one query; its result is the work that follows once the permit is released. */
  const turn = (blocks: BlockRange) =>
    Effect.suspend((): Effect.Effect<Parts, Refused, R> => {
      // The node's limit may have become known while this part waited for its turn.
      if (sizeOf(blocks) > span) return Effect.succeed(part(blocks))
      if (asks >= bounds.asks) return new TooManyAsks({ span: sizeOf(blocks) })
      asks += 1
      return Effect.matchEffect(ask(blocks), {
        onSuccess: (list) => {
          answered = true
          found += list.length
          for (const result of list) bytes += bytesOf(result)
          if (found > bounds.results) return new TooManyResults({ of: "results" })
          if (bytes > bounds.bytes) return new TooManyResults({ of: "bytes" })
          return Effect.succeed(Effect.succeed(list))
        },
        onFailure: (error) => {
          const remedy = cure(error, blocks)
          if (remedy === null) return Effect.fail(error)
          if (remedy.where === "everywhere") span = BigInts.min(span, remedy.size)
          return Effect.succeed(divide(blocks, BigInts.min(span, remedy.size)))
        }
      })
    })

  return yield* part(range)
})

/** The range needs more queries than a request may cost; the node takes about `span` blocks per query. */
export class TooManyAsks extends Data.TaggedError("TooManyAsks")<{ readonly span: bigint }> {}

/** More results, or longer ones, than a request may return. */
export class TooManyResults extends Data.TaggedError("TooManyResults")<{
  readonly of: "results" | "bytes"
}> {}
