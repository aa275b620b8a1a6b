import type { EventFilter } from "../../domain/abi/EventFilter.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { LogFilter } from "../ports/chain/ChainRpc.js"

export type LogQuery = Pick<LogFilter, "address" | "topics">

/** The logs that one watch selects. */
export interface Asked {
  /** Empty: every contract. */
  readonly contracts: ReadonlyArray<Address>
  readonly filters: ReadonlyArray<Pick<EventFilter, "topics">>
}

/** Most addresses, or topics of one place, in a query: nodes refuse more. Above that it names none. */
export const mostOfOne = 1_000

const places = [0, 1, 2, 3] as const

/** Per place, the union of the filters' topics; a filter that accepts any topic makes it null. */
class Union {
  private readonly addresses = new Set<Address>()
  private readonly topics: ReadonlyArray<{ any: boolean; readonly wanted: Set<Bytes32> }> = places.map(
    () => ({ any: false, wanted: new Set() })
  )
  isEmpty = true

  constructor(private readonly isOfAll: boolean) {}

  add({ contracts, filters }: Asked): void {
    for (const contract of contracts) this.addresses.add(contract)
    for (const filter of filters) {
      this.isEmpty = false
      for (const [place, at] of this.topics.entries()) {
        const wanted = filter.topics[place] ?? null
        if (wanted === null) at.any = true
        else for (const topic of wanted) at.wanted.add(topic)
      }
    }
  }

  get query(): LogQuery {
    const topics = this.topics.map(({ any, wanted }) =>
      any || wanted.size > mostOfOne ? null : [...wanted].sort()
    )
    const last = topics.findLastIndex((wanted) => wanted !== null)
    const isNamed = !this.isOfAll && this.addresses.size <= mostOfOne
    return {
      topics: topics.slice(0, last + 1),
      ...(isNamed && { address: [...this.addresses].sort() })
    }
  }
}

/**
 * The queries that return every log of all watches: one for watches with contracts and one for watches without,
 * whatever their number. They may also return other logs.
 */
export const of = (watches: Iterable<Asked>): ReadonlyArray<LogQuery> => {
  const named = new Union(false)
  const all = new Union(true)
  for (const watch of watches) (watch.contracts.length === 0 ? all : named).add(watch)
  return [named, all].flatMap((union) => (union.isEmpty ? [] : [union.query]))
}
