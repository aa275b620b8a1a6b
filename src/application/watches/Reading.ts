import * as BigIntMath from "effect/BigInt"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as LogRanges from "../chain/logs/LogRanges.js"
import type { BlockRange } from "../chain/logs/LogRefusal.js"
import type { ChainClient, ChainRpcError, FoundLog, Header } from "../ports/chain/ChainRpc.js"
import type { Position } from "../ports/Watches.js"
import * as Cursor from "./Cursor.js"
import type { LogQuery } from "./LogQuery.js"

/**
 * Reads the next blocks of a watched chain for `Follower`: settled blocks in ranges, recent blocks by their hashes. It
 * finds the fork point after a reorganisation.
 */

/** The result of a reading: a position, and the logs of the blocks up to it. */
export interface Read {
  /** The parent position of the first block. */
  readonly before: Position
  readonly position: Position
  /** Null: no reorganisation. */
  readonly ancestor: bigint | null
  readonly logs: ReadonlyArray<FoundLog>
  /** The newest block on top of the blocks read. */
  readonly head: bigint
}

/** The node cannot be read now: its answers are inconsistent, or of another chain. */
export class Unreadable extends Data.TaggedError("Unreadable")<{ readonly message: string }> {}

type Reading<A> = Effect.Effect<A, ChainRpcError | Unreadable>

const unreadable = (message: string) => new Unreadable({ message })

/** Limits of one range; a range that exceeds them is read with fewer blocks. */
const widest: LogRanges.Bounds = { asks: 256, concurrency: 4, results: 20_000, bytes: 67_108_864 }

export interface Limits extends Cursor.Bounds {
  readonly bounds?: LogRanges.Bounds
}

/** Blocks whose logs are queried by hash concurrently. */
const blocksAtOnce = 8

const numbers = ({ from, to }: BlockRange): ReadonlyArray<bigint> =>
  Array.from({ length: Number(to - from + 1n) }, (_, index) => from + BigInt(index))

/** Reads all headers in one batch. */
const headersOf = (chain: ChainClient, blocks: ReadonlyArray<bigint>) =>
  Effect.forEach(blocks, (block) => chain.header(block), { concurrency: "unbounded" })

/** Sorts by block and place, and removes duplicates. */
const inOrder = (logs: ReadonlyArray<FoundLog>): ReadonlyArray<FoundLog> => {
  const places = new Map(logs.map((log) => [`${log.blockNumber} ${log.logIndex}`, log]))
  return [...places.values()].sort((one, other) =>
    one.blockNumber === other.blockNumber
      ? one.logIndex - other.logIndex
      : Number(one.blockNumber - other.blockNumber)
  )
}

/**
 * The logs of blocks by their hashes. A lagging node cannot answer for a block that it does not have, so no log is
 * missed.
 */
const logsByHash = (chain: ChainClient, queries: ReadonlyArray<LogQuery>, headers: ReadonlyArray<Header>) =>
  Effect.flatMap(
    Effect.forEach(
      headers,
      (header) =>
        Effect.map(
          Effect.forEach(queries, (query) => chain.logsOf(header.hash, query), { concurrency: "unbounded" }),
          (answers) => ({ header, logs: answers.flat() })
        ),
      { concurrency: "unbounded" }
    ),
    (found) =>
      found.every(({ header, logs }) => logs.every((log) => log.blockNumber === header.number))
        ? Effect.succeed(inOrder(found.flatMap(({ logs }) => logs)))
        : unreadable(`${chain.origin}: logs of one block are of another one`)
  )

/** The logs of the first blocks that fit the bounds, and the number of these blocks. */
const boundedLogs = Effect.fnUntraced(function* (
  chain: ChainClient,
  queries: ReadonlyArray<LogQuery>,
  headers: ReadonlyArray<Header>,
  { bytes, results }: Pick<LogRanges.Bounds, "bytes" | "results">
) {
  const logs: Array<FoundLog> = []
  let size = 0
  let blocks = 0
  while (blocks < headers.length && logs.length < results && size < bytes) {
    const next = headers.slice(blocks, blocks + blocksAtOnce)
    for (const log of yield* logsByHash(chain, queries, next)) {
      logs.push(log)
      size += LogRanges.bytesOf(log)
    }
    blocks += next.length
  }
  return { logs, blocks }
})

/** Reads the blocks that the node has and that fit the bounds, one by one. */
const recent = Effect.fnUntraced(function* (
  chain: ChainClient,
  queries: ReadonlyArray<LogQuery>,
  position: Position,
  range: BlockRange,
  { bounds = widest, depth }: Limits
) {
  const answered = yield* headersOf(chain, numbers(range))
  const end = answered.indexOf(null)
  const headers = (end === -1 ? answered : answered.slice(0, end)).filter((header) => header !== null)
  const extended = Cursor.extend(position, headers, depth)
  if (extended === "forked") return "forked"
  if (extended === "incoherent")
    return yield* unreadable(`${chain.origin}: its blocks do not stand on each other`)
  const { blocks, logs } = yield* boundedLogs(chain, queries, headers, bounds)
  return {
    before: position,
    position: Cursor.rewind(extended, position.next + BigInt(blocks) - 1n),
    ancestor: null,
    logs,
    head: extended.next - 1n
  }
})

/** Reads settled blocks, in as few queries as the node allows. */
const settled = Effect.fnUntraced(function* (
  chain: ChainClient,
  queries: ReadonlyArray<LogQuery>,
  position: Position,
  range: BlockRange,
  head: bigint,
  limits: Limits
) {
  const { bounds = widest } = limits
  const at = Cursor.tip(position)
  const ask = (part: BlockRange) =>
    Effect.map(
      Effect.forEach(queries, (query) => chain.logs({ ...query, fromBlock: part.from, toBlock: part.to }), {
        concurrency: "unbounded"
      }),
      (answers) =>
        answers.flat().filter(({ blockNumber }) => blockNumber >= part.from && blockNumber <= part.to)
    )
  const read = (part: BlockRange): Reading<readonly [ReadonlyArray<FoundLog>, BlockRange] | null> =>
    LogRanges.read({
      range: part,
      ask,
      bounds,
      bytesOf: LogRanges.bytesOf,
      beforeSplit: Effect.void
    }).pipe(
      Effect.map((logs) => [logs, part] as const),
      Effect.catchTags({
        TooManyResults: () => fewer(part),
        TooManyAsks: () => fewer(part)
      })
    )
  const fewer = (part: BlockRange) =>
    part.from === part.to
      ? Effect.succeed(null)
      : read({ from: part.from, to: part.from + (part.to - part.from) / 4n })
  // Query the last block together with the logs: a node that lacks it has not returned all of them.
  const [before, end, found] = yield* Effect.all(
    [at === null ? Effect.succeed(null) : chain.header(at.number), chain.header(range.to), read(range)],
    { concurrency: "unbounded" }
  )
  if (end === null || (at !== null && before === null)) return yield* behind(chain)
  if (at !== null && before?.hash !== at.hash) return "forked"
  // Read one block whole, whatever its size: by hash, as it is read again when processed in parts.
  if (found === null)
    return yield* recent(chain, queries, position, { from: range.from, to: range.from }, limits)
  const [logs, { to }] = found
  const last = to === range.to ? end : yield* chain.header(to)
  if (last === null) return yield* behind(chain)
  return {
    before: position,
    position: Cursor.pass(position, to, last.hash),
    ancestor: null,
    logs: inOrder(logs),
    head
  }
})

const behind = (chain: ChainClient) => unreadable(`${chain.origin}: it does not have all blocks that it had`)

/** Hash of the first block after the lower position, if the other position includes it or a part of it. */
const hashAfter = ({ next }: Position, { hashes, next: end, part }: Position): Bytes32 | undefined =>
  next === end ? part?.hash : hashes.at(Number(next - end))

/** Finds the fork point of the node's current chain, and reads its first blocks from there. */
const forked = (
  chain: ChainClient,
  queries: ReadonlyArray<LogQuery>,
  position: Position,
  head: Header,
  limits: Limits
): Reading<Read> =>
  Effect.gen(function* () {
    const oldest = Cursor.oldest(position)
    const present = new Map<bigint, Header["hash"]>()
    for (const header of yield* headersOf(chain, numbers({ from: oldest, to: position.next - 1n })))
      if (header !== null) present.set(header.number, header.hash)
    const ancestor = Cursor.ancestor(position, present)
    if (ancestor === null)
      return yield* unreadable(
        `${chain.origin}: its chain has none of the last ${position.hashes.length} blocks that were read`
      )
    const to = BigIntMath.min(head.number, ancestor + limits.recentBlocks)
    const before = Cursor.rewind(position, ancestor)
    const read = yield* recent(chain, queries, before, { from: before.next, to }, limits)
    if (read !== "forked") {
      const first = hashAfter(before, read.position)
      if (first !== undefined && first !== hashAfter(before, position)) return { ...read, ancestor }
    }
    return yield* unreadable(`${chain.origin}: it answers for several chains in turn`)
  })

/** Reads the next blocks after the position; null: there are none. */
export const next = (
  chain: ChainClient,
  queries: ReadonlyArray<LogQuery>,
  position: Position,
  head: Header,
  limits: Limits
): Reading<Read | null> =>
  Effect.gen(function* () {
    const plan = Cursor.plan(position, head, limits)
    if (plan._tag === "wait") return null
    if (plan._tag === "fork") return yield* forked(chain, queries, position, head, limits)
    const read =
      plan._tag === "recent"
        ? yield* recent(chain, queries, position, plan, limits)
        : yield* settled(chain, queries, position, plan, head.number, limits)
    if (read === "forked") return yield* forked(chain, queries, position, head, limits)
    return read.position.next === position.next ? null : read
  })
