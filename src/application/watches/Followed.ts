import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Event from "../../domain/abi/Event.js"
import * as EventFilter from "../../domain/abi/EventFilter.js"
import type { FollowedWatch, WatchCursor, WatchSourceState, WatchSpec } from "../ports/Watches.js"
import * as EventLoop from "../runtime/EventLoop.js"
import { type LogQuery, of } from "./LogQuery.js"
import * as Matching from "./Matching.js"

/** The filters of a watch. Definitions that its fields do not fit were left out when the watch was added. */
const filtersOf = ({ events, fields }: WatchSpec): Effect.Effect<ReadonlyArray<EventFilter.EventFilter>> =>
  Effect.map(
    EventLoop.map(events, (text) =>
      Result.flatMap(Event.parse(text, { canonical: true }), (definition) =>
        EventFilter.make(definition, fields)
      )
    ),
    Arr.getSuccesses
  )

export const match = ({ fromBlock, spec, watch }: FollowedWatch): Effect.Effect<Matching.Matched> =>
  Effect.map(filtersOf(spec), (filters) => ({
    watch,
    fromBlock,
    contracts: new Set(spec.contracts),
    filters
  }))

interface Group {
  readonly watches: Map<number, Matching.Matched>
  readonly index: Matching.Index
  /** Null: watches were added or removed since the queries were made. */
  queries: ReadonlyArray<LogQuery> | null
}

/** The watches of a source in memory, as they are in the journal after a revision. */
export class Followed {
  revision = 0
  cursors: ReadonlyArray<WatchCursor> = []
  private readonly watches = new Map<
    number,
    { readonly cursor: number; readonly matched: Matching.Matched }
  >()
  private readonly groups = new Map<number, Group>()

  /** Applies a state of the journal. */
  update(state: WatchSourceState): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (const [watch, { cursor }] of this.watches)
        if (state.watches.get(watch) !== cursor) this.leave(watch, state.watches.has(watch))
      for (const fresh of state.fresh) {
        this.leave(fresh.watch, false)
        this.join(fresh.cursor, yield* match(fresh))
      }
      for (const [watch, cursor] of state.watches) {
        const moved = this.homeless.get(watch)
        if (moved !== undefined && !this.watches.has(watch)) this.join(cursor, moved)
      }
      this.homeless.clear()
      this.cursors = state.cursors
      this.revision = state.revision
    })
  }

  /** Sets a cursor's position after a step. */
  move(cursor: WatchCursor, revision: number): void {
    this.cursors = this.cursors.map((known) => (known.cursor === cursor.cursor ? cursor : known))
    this.revision = revision
  }

  /** Moves the watches of one cursor to another. */
  merge(from: number, into: number, revision: number): void {
    for (const [watch, { cursor, matched }] of [...this.watches])
      if (cursor === from) {
        this.leave(watch, false)
        this.join(into, matched)
      }
    this.cursors = this.cursors.filter(({ cursor }) => cursor !== from)
    this.revision = revision
  }

  queries(cursor: number): ReadonlyArray<LogQuery> {
    const group = this.groups.get(cursor)
    if (group === undefined) return []
    group.queries ??= of(
      [...group.watches.values()].map(({ contracts, filters }) => ({ contracts: [...contracts], filters }))
    )
    return group.queries
  }

  index(cursor: number): Matching.Index {
    return this.groups.get(cursor)?.index ?? new Matching.Index()
  }

  /** Watches that left one cursor and have not joined another yet. */
  private readonly homeless = new Map<number, Matching.Matched>()

  private join(cursor: number, matched: Matching.Matched): void {
    const group = this.groups.get(cursor) ?? {
      watches: new Map(),
      index: new Matching.Index(),
      queries: null
    }
    this.groups.set(cursor, group)
    group.watches.set(matched.watch, matched)
    group.index.add(matched)
    group.queries = null
    this.watches.set(matched.watch, { cursor, matched })
  }

  private leave(watch: number, goesOn: boolean): void {
    const known = this.watches.get(watch)
    if (known === undefined) return
    this.watches.delete(watch)
    if (goesOn) this.homeless.set(watch, known.matched)
    const group = this.groups.get(known.cursor)
    if (group === undefined) return
    group.watches.delete(watch)
    group.index.remove(known.matched)
    group.queries = null
    if (group.watches.size === 0) this.groups.delete(known.cursor)
  }
}
