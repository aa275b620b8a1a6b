import type { EventDefinition } from "../../domain/abi/Event.js"
import type { EventFilter } from "../../domain/abi/EventFilter.js"
import type { DecodedLog } from "../../domain/abi/Log.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { FoundLog } from "../ports/chain/ChainRpc.js"

/** A watch, ready to be matched with logs. */
export interface Matched {
  readonly watch: number
  readonly fromBlock: bigint
  /** Empty: every contract. */
  readonly contracts: ReadonlySet<Address>
  readonly filters: ReadonlyArray<EventFilter>
}

export interface WatchMatch {
  readonly watch: Matched
  readonly definition: EventDefinition
  readonly decoded: DecodedLog
}

interface Entry {
  readonly watch: Matched
  readonly filter: EventFilter
}

/**
 * The keys of a filter in the index, the rarest kind it has: the values of an indexed parameter, or the contracts, or
 * the event.
 */
const keysOf = ({ contracts }: Matched, { topics }: EventFilter): ReadonlyArray<string> => {
  const [events] = topics
  const event = events?.[0] ?? ""
  for (const place of [1, 2, 3]) {
    const wanted = topics[place]
    if (wanted !== null && wanted !== undefined) return wanted.map((topic) => `${event} ${place} ${topic}`)
  }
  return contracts.size > 0 ? [...contracts].map((contract) => `${event} ${contract}`) : [event]
}

const keysOfLog = ({ address, topics }: FoundLog): ReadonlyArray<string> => {
  const [event = ""] = topics
  return [
    ...topics.slice(1).map((topic: Bytes32, index) => `${event} ${index + 1} ${topic}`),
    `${event} ${address}`,
    event
  ]
}

/** Watches by key, so that a log is compared with few of many thousands. */
export class Index {
  private readonly entries = new Map<string, Map<EventFilter, Entry>>()

  add(watch: Matched): void {
    for (const filter of watch.filters)
      for (const key of keysOf(watch, filter)) {
        const known = this.entries.get(key) ?? new Map<EventFilter, Entry>()
        known.set(filter, { watch, filter })
        this.entries.set(key, known)
      }
  }

  remove(watch: Matched): void {
    for (const filter of watch.filters)
      for (const key of keysOf(watch, filter)) {
        const known = this.entries.get(key)
        known?.delete(filter)
        if (known?.size === 0) this.entries.delete(key)
      }
  }

  /** The distinct watches that the log matches, by number, above `after`. */
  *find(log: FoundLog, blockNumber: bigint, after = 0): Generator<WatchMatch> {
    const entries: Array<Entry> = []
    for (const key of keysOfLog(log))
      for (const entry of this.entries.get(key)?.values() ?? []) {
        const { contracts, fromBlock, watch } = entry.watch
        if (watch <= after || blockNumber < fromBlock) continue
        if (contracts.size === 0 || contracts.has(log.address)) entries.push(entry)
      }
    entries.sort((one, other) => one.watch.watch - other.watch.watch)
    let lastWatch = after
    for (const { filter, watch } of entries) {
      if (watch.watch === lastWatch) continue
      // A separate allowance per log: one watch's decoding does not limit another's.
      const decoded =
        log.missing?.includes("data") === true
          ? filter.matchTopics(log, "may")
          : filter.match(log, { left: Number.POSITIVE_INFINITY })
      if (decoded === null) continue
      lastWatch = watch.watch
      yield { watch, definition: filter.definition, decoded }
    }
  }
}
