import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import type { AccountId } from "../../../application/ports/Tenants.js"
import {
  type FollowedWatch,
  Watches,
  WatchesError,
  type WatchSource
} from "../../../application/ports/Watches.js"
import * as Migrations from "../Migrations.js"
import * as Seal from "../Seal.js"
import * as Store from "../Store.js"
import * as Advance from "./Advance.js"
import * as Registry from "./Registry.js"

/**
 * Implements the port `Watches` on SQL. `Registry` has the methods of accounts, `Advance` stores a reader's step, and
 * this file claims sources and holds watches with many undelivered events.
 */

/** Undelivered events at which a watch is held, and at which it resumes. */
const mostWaiting = 1_000
const fewWaiting = 500

interface SourceRow {
  readonly source_no: number
  readonly source_id: string
  readonly chain_id: string
  readonly account_id: AccountId
  readonly rpc: string | null
}

interface WatchRow {
  readonly watch_no: number
  readonly cursor_no: number
  readonly from_block: number | string
  readonly spec: string
}

const toFollowed = (row: WatchRow): FollowedWatch => ({
  watch: Number(row.watch_no),
  cursor: Number(row.cursor_no),
  fromBlock: BigInt(row.from_block),
  spec: JSON.parse(row.spec)
})

/** Null: its URL was sealed under another key. */
const toSource =
  ({ seal }: Store.Store) =>
  (row: SourceRow): Effect.Effect<WatchSource | null> => {
    const source = {
      source: Number(row.source_no),
      chainId: BigInt(row.chain_id),
      accountId: row.account_id === "" ? null : row.account_id
    }
    return row.rpc === null
      ? Effect.succeed({ ...source, rpc: null })
      : Effect.map(Seal.openUrl(seal, Registry.rpcName(row.source_id), row.rpc), (rpc) =>
          rpc === null ? null : { ...source, rpc }
        )
  }

const stateOf = ({ sql }: Store.Store, source: number, after: number) =>
  Effect.gen(function* () {
    const [own] = yield* sql<{ readonly revision: number | string }>`
      select revision from watch_sources where source_no = ${source}`
    const cursors = yield* sql<{
      readonly cursor_no: number
      readonly first_block: number | string
      readonly next_block: number | string
      readonly hashes: string
      readonly part: string | null
    }>`
      select cursor_no, first_block, next_block, hashes, part from watch_cursors
      where source_no = ${source} and exists (
        select 1 from watches where watches.cursor_no = watch_cursors.cursor_no and watches.state = 'enabled')
      order by next_block`
    const all = yield* sql<{ readonly watch_no: number; readonly cursor_no: number }>`
      select watch_no, cursor_no from watches where source_no = ${source} and state = 'enabled'`
    const fresh = yield* sql<WatchRow>`
      select watch_no, cursor_no, from_block, spec from watches
      where source_no = ${source} and state = 'enabled' and revision > ${after} order by watch_no`
    return {
      revision: Number(own?.revision ?? 0),
      cursors: cursors.map((row) => ({
        cursor: Number(row.cursor_no),
        first: BigInt(row.first_block),
        next: BigInt(row.next_block),
        hashes: Advance.readHashes(row.hashes),
        part: row.part === null ? undefined : JSON.parse(row.part)
      })),
      watches: new Map(all.map((row) => [Number(row.watch_no), Number(row.cursor_no)])),
      fresh: fresh.map(toFollowed)
    }
  })

const merge = (store: Store.Store, source: number, revision: number, from: number, into: number) =>
  Effect.gen(function* () {
    const next = yield* Advance.continueRevision(store, source, revision)
    yield* store.sql`update watches set cursor_no = ${into} where cursor_no = ${from} and source_no = ${source}`
    yield* Registry.tidy(store, source)
    return next
  })

/** Watches in this state with more than `count` undelivered events, or with at most as many. */
const byDebt = ({ sql }: Store.Store, source: number, state: string, count: number, isMore: boolean) =>
  Effect.map(
    sql<{ readonly watch_no: number }>`
      select watch_no from watches
      where source_no = ${source} and state = ${state} and sequence >= ${isMore ? count : 0}
        and (
          select count(*) from (
            select 1 from webhook_deliveries
            where webhook_deliveries.request_no = -watches.watch_no and webhook_deliveries.state = 'waiting'
            limit ${count + 1}) as owed) ${sql.literal(isMore ? ">" : "<=")} ${count}`,
    (rows) => rows.map((row) => row.watch_no)
  )

const balance = (store: Store.Store, source: number) =>
  Effect.gen(function* () {
    const { sql } = store
    const unbalanced = Effect.all({
      over: byDebt(store, source, "enabled", mostWaiting, true),
      under: byDebt(store, source, "held", fewWaiting, false)
    })
    const known = yield* unbalanced
    if (known.over.length + known.under.length === 0) return 0
    const revision = yield* Registry.revise(store, source)
    // Rechecks under the source's lock: watches may have been paused meanwhile.
    const { over, under } = yield* unbalanced
    for (const watch of over) {
      yield* Registry.leave(store, watch)
      yield* sql`update watches set state = 'held', revision = ${revision} where watch_no = ${watch}`
    }
    for (const watch of under)
      yield* sql`update watches set state = 'enabled', revision = ${revision} where watch_no = ${watch}`
    yield* Registry.tidy(store, source)
    return over.length + under.length
  })

export const make = (options: Store.Options): Migrations.Stored<Watches["Service"]> =>
  Effect.gen(function* () {
    const store = Store.make(yield* Migrations.client, options)
    const { sql } = store
    const asked = <A>(effect: Effect.Effect<A, WatchesError | SqlError>) =>
      Effect.mapError(store.transaction(effect), (error) =>
        error instanceof WatchesError
          ? error
          : new WatchesError({ reason: "unavailable", message: error.message })
      )
    return {
      ...Registry.make(store, asked),
      sources: (process) =>
        asked(
          Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            const rows = yield* sql<SourceRow>`
              select source_no, source_id, chain_id, account_id, rpc from watch_sources
              where ${Store.isFree(store, process, now)} and exists (
                select 1 from watches
                where watches.source_no = watch_sources.source_no and watches.state in ('enabled', 'held'))`
            const sources = yield* Effect.forEach(rows, toSource(store))
            return sources.filter((source) => source !== null)
          })
        ),
      claim: (source, process, until) =>
        asked(
          Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            const rows = yield* sql<{ readonly revision: number | string }>`
              update watch_sources set claimed_by = ${process}, claimed_until = ${until}
              where source_no = ${source} and ${Store.isFree(store, process, now)}
              returning revision`
            const [row] = rows
            return row === undefined ? null : Number(row.revision)
          })
        ),
      release: (source, process) =>
        asked(
          Effect.asVoid(sql`
            update watch_sources set claimed_until = 0 where source_no = ${source} and claimed_by = ${process}`)
        ),
      state: (source, after) => asked(stateOf(store, source, after)),
      advance: (source, revision, step) => asked(Advance.advance(store)(source, revision, step)),
      merge: (source, revision, from, into) => asked(merge(store, source, revision, from, into)),
      balance: (source) => asked(balance(store, source)),
      note: (source, problem) =>
        asked(Effect.asVoid(sql`update watch_sources set problem = ${problem} where source_no = ${source}`))
    }
  })

export const layer = (options: Store.Options): Migrations.StoredLayer<Watches> =>
  Layer.effect(Watches, make(options))
