import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { type WatchedEvent, WatchesError, type WatchStep } from "../../../application/ports/Watches.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Store from "../Store.js"

/**
 * Stores one step of a source's reader: its position, its events, and their deliveries once they are confirmed.
 * `Watches` runs it in one transaction.
 */

/** Column of hashes: base64 of their concatenated bytes. */
const writeHashes = (hashes: ReadonlyArray<Hex.Bytes32>): string =>
  Buffer.from(hashes.map((hash) => hash.slice(2)).join(""), "hex").toString("base64")

export const readHashes = (column: string): ReadonlyArray<Hex.Bytes32> =>
  (Buffer.from(column, "base64").toString("hex").match(/.{64}/g) ?? []).map((digits) =>
    Hex.unsafe32(`0x${digits}`)
  )

/** Rows of one statement, with six parameters each. */
const perStatement = 300

/**
 * Advances the source's revision from the caller's, and locks the source until the transaction ends. Fails when the
 * revision has changed.
 */
export const continueRevision = ({ sql }: Store.Store, source: number, revision: number) =>
  Effect.flatMap(
    sql`
      update watch_sources set revision = revision + 1
      where source_no = ${source} and revision = ${revision} returning source_no`,
    (rows) =>
      rows.length > 0
        ? Effect.succeed(revision + 1)
        : Effect.fail(new WatchesError({ reason: "stale", message: "the source was changed meanwhile" }))
  )

/** Watches of a cursor. A watch removed meanwhile gets no events. */
const ofCursor = ({ sql }: Store.Store, cursor: number): Fragment =>
  sql`select watches.watch_no from watches where watches.cursor_no = ${cursor}`

/** Reverts the blocks above `ancestor`: notified events get a `removed` event, newest first. */
const takeBack = (store: Store.Store, cursor: number, ancestor: bigint, now: number) =>
  Effect.gen(function* () {
    const { sql } = store
    const above = sql`watch_no in (${ofCursor(store, cursor)}) and block_number > ${ancestor.toString()}`
    yield* sql`delete from watch_events where ${above} and sequence is null`
    yield* sql`
      insert into watch_events
        (watch_no, sequence, kind, stands, block_number, block_hash, log_index, data, told_at)
      select gone.watch_no,
        watches.sequence + row_number() over (
          partition by gone.watch_no order by gone.block_number desc, gone.log_index desc),
        'removed', 0, gone.block_number, gone.block_hash, gone.log_index, gone.data, cast(${now} as bigint)
      from watch_events as gone join watches on watches.watch_no = gone.watch_no
      where watches.cursor_no = ${cursor} and gone.stands = 1
        and gone.block_number > cast(${ancestor.toString()} as bigint)`
    yield* sql`update watch_events set stands = 0 where ${above} and stands = 1`
    yield* owe(store, cursor, now)
  })

const note = (store: Store.Store, cursor: number, events: ReadonlyArray<WatchedEvent>) => {
  const { sql } = store
  return Effect.forEach(
    Store.chunks(events, perStatement),
    (chunk) => sql`
      insert into watch_events
        (watch_no, kind, stands, block_number, block_hash, log_index, data, told_at)
      select own.column1, 'event', 1, own.column2, own.column3, own.column4, own.column5, 0
      from (values ${sql.csv(
        chunk.map(
          ({ blockHash, blockNumber, data, logIndex, watch }) =>
            sql`(cast(${watch} as bigint), cast(${blockNumber.toString()} as bigint), ${blockHash},
              cast(${logIndex} as bigint), ${JSON.stringify(data)})`
        )
      )}) as own
      where own.column1 in (${ofCursor(store, cursor)})`,
    { discard: true }
  )
}

/** Numbers confirmed events, in chain order. */
const tell = ({ sql }: Store.Store, cursor: number, head: bigint, now: number) => sql`
  update watch_events set sequence = numbered.sequence, told_at = ${now}
  from (
    select due.event_no, watches.sequence + row_number() over (
      partition by due.watch_no order by due.block_number, due.log_index) as sequence
    from watch_events as due join watches on watches.watch_no = due.watch_no
    where watches.cursor_no = ${cursor} and due.sequence is null
      and due.block_number + watches.confirmations - 1 <= cast(${head.toString()} as bigint)
  ) as numbered
  where watch_events.event_no = numbered.event_no`

/** Schedules deliveries of newly numbered events to their watches' webhooks. */
const owe = (store: Store.Store, cursor: number, now: number) =>
  Effect.gen(function* () {
    const { sql } = store
    yield* sql`
      insert into webhook_deliveries (request_no, sequence, webhook_no, state, attempts, owed_at, due_at)
      select -watches.watch_no, told.sequence, watches.webhook_no, 'waiting', 0,
        cast(${now} as bigint), cast(${now} as bigint)
      from watches join watch_events as told
        on told.watch_no = watches.watch_no and told.sequence > watches.sequence
      join webhooks on webhooks.webhook_no = watches.webhook_no
      where watches.cursor_no = ${cursor}
      ${Store.forKeyShare(store, "webhooks")}`
    yield* sql`
      update watches set sequence = (
        select max(told.sequence) from watch_events as told where told.watch_no = watches.watch_no)
      where cursor_no = ${cursor} and exists (
        select 1 from watch_events as told
        where told.watch_no = watches.watch_no and told.sequence > watches.sequence)`
  })

/** Deletes delivered events that can no longer be reverted. */
const forget = ({ sql }: Store.Store, { cursor, position }: WatchStep) => {
  const before = position.next - BigInt(position.hashes.length)
  return sql`
    delete from watch_events
    where watch_no in (select watch_no from watches where cursor_no = ${cursor})
      and sequence is not null
      and (stands = 0 or block_number < ${before.toString()})
      and not exists (
        select 1 from webhook_deliveries
        where webhook_deliveries.request_no = -watch_events.watch_no
          and webhook_deliveries.sequence = watch_events.sequence)`
}

/** Interval of deletions, in revisions. */
const forgetEvery = 64

const nothingWaits = ({ sql }: Store.Store, cursor: number) =>
  Effect.map(
    sql`
      select 1 from watch_events join watches on watches.watch_no = watch_events.watch_no
      where watches.cursor_no = ${cursor} and watch_events.sequence is null limit 1`,
    (rows) => rows.length === 0
  )

export const advance =
  (store: Store.Store) =>
  (source: number, revision: number, step: WatchStep): Effect.Effect<number, WatchesError | SqlError> =>
    Effect.gen(function* () {
      const { sql } = store
      const { ancestor, cursor, events, head, position } = step
      const next = yield* continueRevision(store, source, revision)
      const now = yield* Clock.currentTimeMillis
      if (ancestor !== null) yield* takeBack(store, cursor, ancestor, now)
      yield* note(store, cursor, events)
      if (!(yield* nothingWaits(store, cursor))) {
        yield* tell(store, cursor, head, now)
        yield* owe(store, cursor, now)
      }
      yield* sql`
        update watch_cursors
        set first_block = ${position.first.toString()}, next_block = ${position.next.toString()},
          hashes = ${writeHashes(position.hashes)}, part = ${position.part === undefined ? null : JSON.stringify(position.part)}
        where cursor_no = ${cursor}`
      if (next % forgetEvery === 0) yield* forget(store, step)
      return next
    })
