import * as Effect from "effect/Effect"
import type { FoundLog } from "../ports/chain/ChainRpc.js"
import type { PartOfBlock, WatchedEvent } from "../ports/Watches.js"
import * as EventLoop from "../runtime/EventLoop.js"
import type { Found, Index } from "./Matching.js"

/** Characters of JSON that are told of one event: the node decides how long a log is. */
const mostCharacters = 65_536

interface Told {
  readonly event: WatchedEvent
  readonly characters: number
}

/** What a watch is told of a log. What is too long to be told is in the transaction's receipt. */
const told = (log: FoundLog, { decoded, definition, watch }: Found): Told => {
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
  // A log of more values than are decoded has no definition, and no arguments.
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

/** What one step may tell of, of all watches together; it tells of one event at least. */
export interface Bounds {
  readonly events: number
  /** Of their arguments as JSON. */
  readonly characters: number
}

/** The events that one step tells of: those of whole blocks, or a part of those of the first block. */
export interface Step {
  readonly events: ReadonlyArray<WatchedEvent>
  /** The last block of which all is told, where later ones have to wait; null: none has to. */
  readonly until: bigint | null
  /** What is told of the first block when that is not all. */
  readonly part: PartOfBlock | undefined
}

/** Logs of blocks from `first` on, in the order of the chain. */
export interface Logs {
  readonly first: bigint
  readonly logs: ReadonlyArray<FoundLog>
  /** What of the first block was told before. */
  readonly after: PartOfBlock | undefined
}

/** What watches are told of logs in one step. */
export const step = (index: Index, { after, first, logs }: Logs, bounds: Bounds): Effect.Effect<Step> => {
  /** The highest number of a watch that was told of the log before; null: all were. */
  const toldOf = ({ blockNumber, logIndex }: FoundLog): number | null => {
    if (after === undefined || blockNumber !== first || logIndex > after.logIndex) return 0
    return logIndex === after.logIndex ? after.watch : null
  }
  return Effect.gen(function* () {
    const events: Array<WatchedEvent> = []
    let characters = 0
    /** Events of the blocks before that of the log. */
    let whole = 0
    let block = first
    for (const log of logs) {
      if (log.blockNumber !== block) {
        whole = events.length
        block = log.blockNumber
      }
      const known = toldOf(log)
      for (const found of known === null ? [] : index.find(log, block, known)) {
        const last = events.at(-1)
        if (last !== undefined && (events.length >= bounds.events || characters >= bounds.characters)) {
          const { logIndex, watch } = last
          return block === first
            ? { events, until: null, part: { hash: log.blockHash, logIndex, watch } }
            : { events: events.slice(0, whole), until: block - 1n, part: undefined }
        }
        const next = told(log, found)
        events.push(next.event)
        characters += next.characters
        yield* EventLoop.breathe
      }
      yield* EventLoop.breathe
    }
    return { events, until: null, part: undefined }
  })
}
