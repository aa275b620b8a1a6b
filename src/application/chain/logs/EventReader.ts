import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { EventDefinition } from "../../../domain/abi/Event.js"
import { type EventFilter, maxValuesInAll } from "../../../domain/abi/EventFilter.js"
import type { DecodedLog } from "../../../domain/abi/Log.js"
import { maxValuesAtOnce } from "../../../domain/abi/Values.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import { type Failure, type InvalidRequest, invalidAt, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import { type ChainClient, ChainRpcError, type FoundLog, type LogFilter } from "../../ports/chain/ChainRpc.js"
import type { Caller } from "../../request/Caller.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as BlockReference from "../BlockReference.js"
import * as Connection from "../Connection.js"
import * as EventQuery from "./EventQuery.js"
import * as LogRanges from "./LogRanges.js"
import { type BlockRange, isTooLarge, sizeOf } from "./LogRefusal.js"

/**
 * Reads the events of a request's blocks, for `GetEvents` and `FilterEvents`. It splits ranges that a node refuses.
 *
 * Gotchas: a reading in parts is repeated when a reorganisation changes the chain in between.
 */

export interface FoundEvent {
  readonly log: FoundLog
  readonly definition: EventDefinition
  readonly decoded: DecodedLog
}

/** Most blocks in one request. */
export const maxBlocks = 1_000_000n

export const bounds: LogRanges.Bounds = {
  asks: 1_000,
  concurrency: 8,
  results: 10_000,
  bytes: 33_554_432
}

/** Most readings of a range while its chain changes. */
const maxReadings = 3

/** Time limit for all readings of a request together. */
const patienceMillis = 60_000

/** A reorganisation changed the chain between the parts of a reading. */
class ViewChanged extends Data.TaggedError("ViewChanged") {}

const reference = (
  path: "fromBlock" | "toBlock",
  text: string | undefined
): Result.Result<BlockReference.BlockReference, InvalidRequest> =>
  Result.mapError(BlockReference.parse(text ?? "latest"), (message) => invalidAt(path, message))

const tag = (chain: ChainClient, tag: "latest" | "safe" | "finalized") =>
  Effect.flatMap(chain.block(tag), (block) =>
    block !== null && block.number <= BigInt(Number.MAX_SAFE_INTEGER)
      ? Effect.succeed(block)
      : new ChainRpcError({
          reason: "notAnRpc",
          origin: chain.origin,
          message: `${chain.origin}: it has no ${tag} block`
        })
  )

/**
 * The request's blocks, limited to those that exist when it begins, so that every part sees one chain, however long the
 * reading takes. Null: none of them exists yet.
 */
const resolve = (
  first: bigint,
  last: bigint,
  head: bigint
): Result.Result<BlockRange | null, InvalidRequest> => {
  if (first > last)
    return Result.fail(invalidAt("fromBlock", `fromBlock is after toBlock: ${first} is above ${last}`))
  if (first > head) return Result.succeed(null)
  const range = { from: first, to: last < head ? last : head }
  return sizeOf(range) > maxBlocks
    ? Result.fail(
        invalidAt(
          "fromBlock",
          `the range has ${sizeOf(range)} blocks, at most ${maxBlocks} are read per request: end it at block ${first + maxBlocks - 1n} and request the remaining blocks separately`,
          "block_range_too_wide"
        )
      )
    : Result.succeed(range)
}

/**
 * The queries that together return every log of the filters. Filters that differ only in the event's own topic share a
 * query: a name with several events costs no more than one event.
 */
export const queries = (filters: ReadonlyArray<EventFilter>): ReadonlyArray<Pick<LogFilter, "topics">> => {
  const groups = new Map<
    string,
    { readonly own: Set<Bytes32> | null; readonly rest: EventFilter["topics"] }
  >()
  for (const { definition, topics } of filters) {
    const rest = definition.anonymous ? topics : topics.slice(1)
    const key = JSON.stringify([definition.anonymous, rest])
    const group = groups.get(key) ?? { own: definition.anonymous ? null : new Set<Bytes32>(), rest }
    group.own?.add(definition.topic)
    groups.set(key, group)
  }
  return [...groups.values()].map(({ own, rest }) => ({ topics: own === null ? rest : [[...own], ...rest] }))
}

const inChainOrder = ({ log: a }: FoundEvent, { log: b }: FoundEvent): number =>
  a.blockNumber === b.blockNumber ? a.logIndex - b.logIndex : Number(a.blockNumber - b.blockNumber)

/** Queries blocks, and uses only the part of the answer that matches the query. */
const asker = (
  chain: ChainClient,
  filters: ReadonlyArray<EventFilter>,
  contracts: ReadonlySet<Address>
): ((range: BlockRange) => Effect.Effect<ReadonlyArray<FoundEvent>, ChainRpcError>) => {
  const address = contracts.size === 0 ? {} : { address: [...contracts] }
  const asked = queries(filters).map((query) => ({ ...query, ...address }))
  const event = (log: FoundLog): FoundEvent | null => {
    for (const { definition, match, matchTopics } of filters) {
      const decoded = log.missing?.includes("data") === true ? matchTopics(log) : match(log)
      if (decoded !== null) return { log, definition, decoded }
    }
    return null
  }
  return ({ from, to }) =>
    Effect.map(
      Effect.forEach(asked, (query) => chain.logs({ ...query, fromBlock: from, toBlock: to }, "lenient"), {
        concurrency: "unbounded"
      }),
      (answers) => answers.flat()
    ).pipe(
      Effect.flatMap((logs) => {
        const found = new Map<string, FoundEvent>()
        const collect = (log: FoundLog): void => {
          const { blockNumber, logIndex, missing = [] } = log
          if (!missing.includes("blockNumber") && (blockNumber < from || blockNumber > to)) return
          if (contracts.size > 0 && !contracts.has(log.address)) return
          // Logs without a known position all count as distinct.
          const isPlaced = !missing.includes("blockNumber") && !missing.includes("logIndex")
          const place = isPlaced ? `${blockNumber} ${logIndex}` : `odd ${found.size}`
          const one = found.has(place) ? null : event(log)
          if (one !== null) found.set(place, one)
        }
        return Effect.map(EventLoop.map(logs, collect), () => [...found.values()].sort(inChainOrder))
      })
    )
}

/** Fails when an event holds more values than are decoded: events are neither shortened nor left out. */
const decodable = (events: ReadonlyArray<FoundEvent>) => {
  const tooLarge = events.find(({ decoded }) => decoded.eventDef === null)
  return tooLarge === undefined
    ? Effect.succeed(events)
    : unprocessable("too_many_events", [
        {
          path: "fromBlock",
          message: Reasons.text("eventValues", {
            log: tooLarge.log.logIndex,
            block: tooLarge.log.blockNumber,
            values: maxValuesAtOnce,
            all: maxValuesInAll
          })
        }
      ])
}

/**
 * One reading. If it takes several parts, the hash of the last block (which stands for all blocks before it) is
 * compared before and after, so that parts of two chains are never combined.
 */
const readOnce = Effect.fnUntraced(function* (
  chain: ChainClient,
  ask: (range: BlockRange) => Effect.Effect<ReadonlyArray<FoundEvent>, ChainRpcError>,
  range: BlockRange
) {
  const anchor = Effect.map(chain.block(range.to), (block) => block?.hash ?? null)
  let before: Bytes32 | null | undefined
  const events = yield* LogRanges.read({
    range,
    ask,
    bounds,
    bytesOf: ({ log }) => LogRanges.bytesOf(log),
    beforeSplit: Effect.map(anchor, (hash) => {
      before = hash
    })
  })
  if (before === undefined) return events
  const after = yield* anchor
  return before !== null && before === after ? events : yield* new ViewChanged()
})

/** The failure that callers receive for an incomplete reading. */
const toFailure = (
  { origin }: ChainClient,
  range: BlockRange,
  problem: ViewChanged | LogRanges.TooManyResults | LogRanges.TooManyAsks
): Failure => {
  switch (problem._tag) {
    case "ViewChanged":
      return unprocessable("chain_reorganised", [
        { path: "toBlock", message: Reasons.text("reorganised", { ...range, readings: maxReadings }) }
      ])
    case "TooManyResults":
      return unprocessable("too_many_events", [
        {
          path: "fromBlock",
          message:
            problem.of === "results"
              ? Reasons.text("eventCount", { ...range, count: bounds.results })
              : Reasons.text("eventBytes", { ...range, bytes: bounds.bytes })
        }
      ])
    case "TooManyAsks": {
      const { asks } = bounds
      const figures = { ...range, origin, span: problem.span, asks, most: BigInt(asks / 2) * problem.span }
      return unprocessable("node_limit", [{ path: "rpc", message: Reasons.text("blocksAtATime", figures) }])
    }
  }
}

export const read = Effect.fnUntraced(function* (caller: Caller, request: EventQuery.Request) {
  const from = yield* Effect.fromResult(reference("fromBlock", request.fromBlock))
  const to = yield* Effect.fromResult(reference("toBlock", request.toBlock))
  const filters = yield* EventQuery.filters(caller, request)
  const { chain, trust } = yield* Connection.open(caller, request, "rpc")
  const refusal = Connection.refusal(trust, "rpc")
  const head = yield* Effect.mapError(tag(chain, "latest"), refusal)
  const numberOf = (block: BlockReference.BlockReference): Effect.Effect<bigint, Failure> => {
    if (typeof block === "bigint") return Effect.succeed(block)
    if (block === "latest") return Effect.succeed(head.number)
    return Effect.mapError(
      Effect.map(tag(chain, block), ({ number }) => number),
      refusal
    )
  }
  const [first, last] = yield* Effect.all([numberOf(from), numberOf(to)], { concurrency: "unbounded" })
  const range = yield* Effect.fromResult(resolve(first, last, head.number))
  if (range === null) return []
  const ask = asker(chain, filters, new Set(request.contracts ?? []))
  return yield* readOnce(chain, ask, range).pipe(
    Effect.retry({ times: maxReadings - 1, while: ({ _tag }) => _tag === "ViewChanged" }),
    Effect.mapError((error) => {
      if (error._tag !== "ChainRpcError") return toFailure(chain, range, error)
      if (!isTooLarge(error)) return refusal(error)
      return unprocessable("too_many_events", [
        { path: "fromBlock", message: Reasons.text("eventAnswer", { ...range }) }
      ])
    }),
    Effect.flatMap(decodable),
    Effect.timeoutOrElse({
      duration: patienceMillis,
      orElse: () =>
        unprocessable("node_limit", [
          {
            path: "rpc",
            message: Reasons.text("slowNode", {
              ...range,
              origin: chain.origin,
              seconds: patienceMillis / 1_000
            })
          }
        ])
    })
  )
})
