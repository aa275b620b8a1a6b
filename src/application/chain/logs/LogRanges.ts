import * as BigInts from "effect/BigInt"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { RawLog } from "../../../domain/evm/RawLog.js"
import type { ChainRpcError } from "../../ports/chain/ChainRpc.js"
import { type BlockRange, cure, sizeOf } from "./LogRefusal.js"

/** What reading one range may cost, and how much it may bring. */
export interface Bounds {
  /** Questions to the node. */
  readonly asks: number
  /** Questions that are open at the same time. */
  readonly concurrency: number
  /** Elements of the result. */
  readonly results: number
  /** Bytes of memory that they take: the node decides how long each is. */
  readonly bytes: number
}

export interface Reading<A, R> {
  readonly range: BlockRange
  /** What the blocks hold, in chain order. */
  readonly ask: (range: BlockRange) => Effect.Effect<ReadonlyArray<A>, ChainRpcError, R>
  readonly bytesOf: (result: A) => number
  readonly bounds: Bounds
  /** Run once, before the range is read in more than one part. */
  readonly beforeSplit: Effect.Effect<void, ChainRpcError, R>
}

/** Memory of a log, and of what is kept beside it, about. */
export const bytesOf = ({ data }: RawLog): number => 1_024 + data.length

/** Consecutive ranges of `size` blocks, the last one what is left. */
const pieces = ({ from, to }: BlockRange, size: bigint): ReadonlyArray<BlockRange> => {
  const list: Array<BlockRange> = []
  for (let begin = from; begin <= to; begin += size) {
    list.push({ from: begin, to: BigInts.min(begin + size - 1n, to) })
  }
  return list
}

/**
 * Reads a range in as few parts as the node allows. A part that the node refuses because it is too much is split,
 * and what a refusal tells of the node's limit holds for all parts that are still to come. Until the first answer
 * parts are asked one after another, so that a node which refuses everything is asked only as often as the range
 * can be halved; from then on several at once. The results are in chain order, each block's from exactly one answer.
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
  /** The most blocks that the node takes at a time, as far as it has told. */
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

  /** One question, and what is to be done after it, when the permit is given back. */
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

/** The range would take more questions than a request may cost; the node takes about `span` blocks at a time. */
export class TooManyAsks extends Data.TaggedError("TooManyAsks")<{ readonly span: bigint }> {}

/** More results, or longer ones, than a request may bring. */
export class TooManyResults extends Data.TaggedError("TooManyResults")<{
  readonly of: "results" | "bytes"
}> {}
