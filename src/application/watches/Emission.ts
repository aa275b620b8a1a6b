import * as Effect from "effect/Effect"
import type { FoundLog } from "../ports/chain/ChainRpc.js"
import type { PartOfBlock, WatchedEvent } from "../ports/Watches.js"
import * as EventLoop from "../runtime/EventLoop.js"
import type { Index, WatchMatch } from "./Matching.js"

/** Most characters of JSON per event: the node decides how long a log is. */
const mostCharacters = 65_536

interface SizedEvent {
  readonly event: WatchedEvent
  readonly characters: number
}

/** The event of a watch for a log. Arguments that are too long are left out; the transaction's receipt has them. */
const eventOf = (log: FoundLog, { decoded, definition, watch }: WatchMatch): SizedEvent => {
  const place = {
    blockNumber: Number(log.blockNumber),
    blockHash: log.blockHash,
    txHash: log.missing?.includes("transactionHash") === true ? "" : log.txHash,
    logIndex: log.logIndex,
    address: log.address,
    eventName: definition.name,
    eventDef: definition.canonical,
    ...(log.missing !== undefined && { missing: log.missing })
  }
  // A log with more values than are decoded has no definition and no arguments.
  const characters = decoded.eventDef === null ? 0 : JSON.stringify(decoded.args).length
  const isWhole = decoded.eventDef !== null && characters <= mostCharacters
  const event = {
    watch: watch.watch,
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    logIndex: log.logIndex,
    data: isWhole ? { ...place, args: decoded.args } : { ...place, args: null, isTooLarge: true }
  }
  return { event, characters: isWhole ? characters : 0 }
}

/** Limits of one step, for all watches together; a step has at least one event. */
export interface Bounds {
  readonly events: number
  /** Characters of the events' arguments as JSON. */
  readonly characters: number
}

/** The events of one step: those of whole blocks, or a part of the first block's. */
export interface Step {
  readonly events: ReadonlyArray<WatchedEvent>
  /** The last block that is complete, where later ones have to wait; null: none has to. */
  readonly until: bigint | null
  /** The processed part of the first block, if it is not complete. */
  readonly part: PartOfBlock | undefined
}

/** Logs of blocks from `first` on, in chain order. */
export interface Logs {
  readonly first: bigint
  readonly logs: ReadonlyArray<FoundLog>
  /** The part of the first block that was processed before. */
  readonly after: PartOfBlock | undefined
}

/** The events of one step for all watches. */
export const step = (index: Index, { after, first, logs }: Logs, bounds: Bounds): Effect.Effect<Step> => {
  /** The highest watch that has the log's event already; 0: none has; null: all have. */
  const lastWatchOf = ({ blockNumber, logIndex }: FoundLog): number | null => {
    if (after === undefined || blockNumber !== first || logIndex > after.logIndex) return 0
    return logIndex === after.logIndex ? after.watch : null
  }
  return Effect.gen(function* () {
    const events: Array<WatchedEvent> = []
    let characters = 0
    /** Number of events in complete blocks before the log's. */
    let whole = 0
    let block = first
    for (const log of logs) {
      if (log.blockNumber !== block) {
        whole = events.length
        block = log.blockNumber
      }
      const known = lastWatchOf(log)
      for (const found of known === null ? [] : index.find(log, block, known)) {
        const last = events.at(-1)
        if (last !== undefined && (events.length >= bounds.events || characters >= bounds.characters)) {
          const { logIndex, watch } = last
          return block === first
            ? { events, until: null, part: { hash: log.blockHash, logIndex, watch } }
            : { events: events.slice(0, whole), until: block - 1n, part: undefined }
        }
        const next = eventOf(log, found)
        events.push(next.event)
        characters += next.characters
        yield* EventLoop.breathe
      }
      yield* EventLoop.breathe
    }
    return { events, until: null, part: undefined }
  })
}
