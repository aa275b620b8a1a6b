import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type * as Records from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { Lane, LaneAccess } from "../../../application/ports/journal/Transactions.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import * as Rows from "../Rows.js"
import type * as Lineage from "../recovery/Lineage.js"
import type * as Store from "../Store.js"
import * as Claims from "./tables/Claims.js"
import * as RecordsOf from "./tables/Records.js"
import * as RequestRows from "./tables/RequestRows.js"

/** A lane's work in addition to its ready ops. */

type Method<K extends keyof RequestJournal["Service"]> = (store: Store.Store) => RequestJournal["Service"][K]

const ofLane = ({ sql }: Store.Store, { chainId, signer }: Lane) =>
  sql`chain_id = ${chainId.toString()} and signer = ${signer}`

interface UnopenedRow {
  readonly request_id: string
  readonly account_id: AccountId
  readonly endpoint: string
  readonly context: string | null
  readonly unopened: number
  readonly accepted_at: number | string
}

export const unopened: Method<"unopened"> = (store) => (lane, limit, endpoint) =>
  store.query(
    Effect.gen(function* () {
      const { sql } = store
      const now = yield* Clock.currentTimeMillis
      const own = endpoint === undefined ? sql.literal("") : sql`and endpoint = ${endpoint}`
      const rows = yield* sql<UnopenedRow>`
        select request_id, account_id, endpoint, context, unopened, accepted_at
        from requests
        where ${ofLane(store, lane)} and state = 'open' and unopened > 0
          and (due_at is null or due_at <= ${now}) and held is null and cancelled is null ${own}
        order by request_no limit ${sql.literal(Rows.bound(limit))}`
      return rows.map((row) => ({
        requestId: row.request_id,
        accountId: row.account_id,
        endpoint: row.endpoint,
        contextDigest: row.context,
        unopened: row.unopened,
        acceptedAt: Number(row.accepted_at)
      }))
    })
  )

export const nextDue: Method<"nextDue"> = (store) => (lane) =>
  store.query(
    Effect.map(
      store.sql<{ readonly due_at: number | string | null }>`
        select min(due_at) as due_at from requests
        where ${ofLane(store, lane)} and state = 'open' and due_at is not null and held is null
          and cancelled is null`,
      ([row]) => (row?.due_at == null ? null : Number(row.due_at))
    )
  )

interface OverdueRow {
  readonly request_id: string
  readonly endpoint: string
  readonly accepted_at: number | string
  readonly is_exposed: number | boolean
  readonly is_noted: number | boolean
}

export const overdue: Method<"overdue"> = (store) => (lane, before, limit, after) =>
  store.query(
    Effect.map(
      store.sql<OverdueRow>`
        select request_id, endpoint, accepted_at, is_exposed, is_noted from (
          select request_no, request_id, endpoint, accepted_at, unopened, exists (
              select 1 from ops where ops.request_id = requests.request_id and ops.was_public = 1
            ) as is_exposed, note is not null as is_noted
          from requests
          where ${ofLane(store, lane)} and state = 'open' and held is null and cancelled is null
            and accepted_at < ${before} and (not_before is null or not_before * 1000 < ${before})
            and (due_at is null or due_at < ${before})
            and request_no > coalesce((
              select behind.request_no from requests as behind where behind.request_id = ${after ?? null}), 0)
        ) as old
        where not is_exposed or (
          not exists (
            select 1 from request_events
            where request_events.request_no = old.request_no and told_at >= ${before}
              and kind in ('signed', 'replaced', 'included'))
          and (unopened > 0 or exists (
            select 1 from ops
            where ops.request_id = old.request_id and ops.state = 'accepted' and ops.was_public is distinct from 1)))
        order by request_no limit ${store.sql.literal(Rows.bound(limit))}`,
      (rows) =>
        rows.map((row) => ({
          requestId: row.request_id,
          endpoint: row.endpoint,
          acceptedAt: Number(row.accepted_at),
          isExposed: Boolean(row.is_exposed),
          isNoted: Boolean(row.is_noted)
        }))
    )
  )

interface LaneRow {
  readonly chain_id: string
  readonly signer: string
  readonly account_id: AccountId
}

export const busy = (store: Store.Store): Effect.Effect<ReadonlyArray<Records.BusyLane>, JournalError> =>
  Effect.suspend(() => {
    // Read before the snapshot, which lacks later writes.
    const newest = store.lineage.newest()
    return store.reading(lanesWith(store, newest))
  })

const lanesWith = (store: Store.Store, newest: Lineage.Stored | null) =>
  Effect.gen(function* () {
    const { sql } = store
    yield* Claims.checkNewest(store, newest)
    const found = new Map<string, Records.BusyLane>()
    const note = (row: LaneRow, key: LaneAccess["key"] | null) => {
      const name = `${row.chain_id} ${row.signer}`
      if (!found.has(name)) found.set(name, { lane: Claims.laneOf(row), accountId: row.account_id, key })
    }
    const transactions = yield* sql<LaneRow & Parameters<typeof RecordsOf.keyOf>[0]>`
      select distinct chain_id, signer, account_id, key_client, key_version, key_asset from transactions
      where state in ('signed', 'mined')`
    for (const row of transactions) note(row, RecordsOf.keyOf(row))
    const requests = yield* sql<LaneRow & { readonly lane_key: string | null }>`
      select requests.chain_id, requests.signer, requests.account_id, requests.lane_key
      from (
        select chain_id, signer, min(request_no) as request_no from requests
        where state = 'open' and signer is not null
        group by chain_id, signer
        union all
        select requests.chain_id, requests.signer, min(requests.request_no)
        from handovers cross join ops cross join requests
        where ops.op_id = handovers.op_id and requests.request_id = ops.request_id
          and requests.state <> 'open' and requests.signer is not null
        group by requests.chain_id, requests.signer
      ) as first
      cross join requests where requests.request_no = first.request_no`
    for (const row of requests) note(row, RequestRows.laneKeyOf(row.lane_key))
    return [...found.values()]
  })
