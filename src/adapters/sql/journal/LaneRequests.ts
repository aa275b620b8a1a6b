import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { LaneJournal } from "../../../application/ports/journal/LaneJournal.js"
import type * as Records from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import { direct } from "../../../application/ports/journal/Requests.js"
import type { Lane, LaneAccess } from "../../../application/ports/journal/Transactions.js"
import type { AccountId } from "../../../application/ports/Tenants.js"
import * as Rows from "../Rows.js"
import type * as Lineage from "../recovery/Lineage.js"
import * as Store from "../Store.js"
import * as Claims from "./tables/Claims.js"
import * as RecordsOf from "./tables/Records.js"
import * as RequestRows from "./tables/RequestRows.js"
import * as Transactions from "./tables/Transactions.js"

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
        select request_id, account_id, endpoint, context, coalesce(unopened, elements) as unopened, accepted_at
        from requests
        where ${ofLane(store, lane)} and state = 'open' and (unopened is null or unopened > 0)
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
          and (unopened is null or unopened > 0 or exists (
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

interface Uncounted extends RequestRows.FailedRow {
  readonly elements: number
  readonly cancelled: string | null
}

/** Counts elements without an op, for requests of an earlier version. */
const count = (store: Store.Store, lane: Lane) =>
  Effect.gen(function* () {
    const { sql } = store
    const uncounted = sql`${ofLane(store, lane)} and state = 'open'
      and (unopened is null or unopened > 0) and unopened is null`
    const rows = yield* sql<Uncounted>`
      select request_id, elements, failed, cancelled from requests where ${uncounted}
      order by request_id ${store.forUpdate}`
    if (rows.length === 0) return
    const ops = yield* sql<{ readonly request_id: string; readonly op_index: number }>`
      select request_id, op_index from ops
      where request_id in (select request_id from requests where ${uncounted}) and state <> 'abandoned'`
    const there = new Map(
      rows.map((row) => [row.request_id, new Set(RequestRows.failedOf(row).map(({ index }) => index))])
    )
    for (const op of ops) there.get(op.request_id)?.add(op.op_index)
    yield* Rows.each(
      store,
      "update requests set unopened = given.unopened from (%) as given where requests.request_id = given.request_id",
      { request_id: "text", unopened: "integer" },
      rows.map(({ cancelled, elements, request_id }) => [
        request_id,
        cancelled === null ? Math.max(0, elements - (there.get(request_id)?.size ?? 0)) : 0
      ])
    )
  })

/** Marks ops whose signed bytes left the process. */
const expose = (store: Store.Store, lane: Lane) => {
  const { sql } = store
  return sql`
    update ops set was_public = 1
    where request_id in (select request_id from requests where ${ofLane(store, lane)} and state = 'open')
      and was_public is null and (
        exists (select 1 from handovers where handovers.op_id = ops.op_id)
        or exists (
          select 1 from transaction_ops
          join transactions on transactions.chain_id = transaction_ops.chain_id
            and transactions.signer = transaction_ops.signer and transactions.nonce = transaction_ops.nonce
          where transaction_ops.op_id = ops.op_id
            and transactions.state in ('signed', 'mined', 'settled', 'foreign')))`
}

interface DirectRow extends RequestRows.FailedRow {
  readonly request_no: number | string
  readonly accepted_at: number | string
  /** Return data of its call. */
  readonly note: string | null
}

interface DirectTransaction {
  readonly nonce: string
  readonly state: Transactions.State["state"]
  readonly tx_hash: string | null
  readonly success: number | null
}

/** Endpoint of direct transactions. */
const directEndpoint = "/transactSigner"

/** Gives each open request for a direct transaction an op, which the transaction carries. */
export const writeDirect = (store: Store.Store, lane: Lane) =>
  Effect.gen(function* () {
    const { sql } = store
    const requests = yield* sql<DirectRow>`
      select request_id, failed, request_no, accepted_at, note from requests
      where ${ofLane(store, lane)} and state = 'open' and endpoint = ${directEndpoint} and cancelled is null
        and not exists (
          select 1 from ops where ops.request_id = requests.request_id and ops.state <> 'abandoned')
      order by request_no`
    for (const row of requests) {
      if (RequestRows.failedOf(row).length > 0) continue
      const [transaction] = yield* sql<DirectTransaction>`
        select nonce, state, tx_hash, success from transactions
        where direct = ${row.request_id} and direct is not null and state in ('signed', 'mined', 'settled')
        order by nonce desc limit 1`
      const isMined = transaction?.state === "mined" || transaction?.state === "settled"
      const newest =
        transaction === undefined
          ? null
          : (transaction.tx_hash ?? (yield* Transactions.newest(store, lane, BigInt(transaction.nonce))))
      yield* sql`
        insert into ops ${sql.insert({
          request_id: row.request_id,
          op_index: 0,
          authority: lane.signer,
          chain_id: lane.chainId.toString(),
          entry_point: direct,
          wallet: lane.signer,
          nonce_key: Store.nonceKey(BigInt(row.request_no)),
          sequence: Store.uint64(0n),
          user_op_hash: null,
          reserve: "0",
          returned: row.note,
          state: transaction === undefined ? "accepted" : isMined ? "settled" : "sent",
          tx_hash: newest,
          success: isMined ? transaction.success : null,
          accepted_at: Number(row.accepted_at),
          was_public: transaction === undefined ? null : 1
        })}`
      if (transaction !== undefined)
        yield* sql`
          insert into transaction_ops (chain_id, signer, nonce, op_id, position)
          select ${lane.chainId.toString()}, ${lane.signer}, ${transaction.nonce}, op_id, 0 from ops
          where request_id = ${row.request_id} and state <> 'abandoned'`
    }
  })

export const takeOver =
  (store: Store.Store): LaneJournal["Service"]["takeOver"] =>
  (lane) =>
    Effect.gen(function* () {
      yield* Claims.fence(store, lane)
      yield* store.sql`
        delete from transactions where ${ofLane(store, lane)} and state in ('free', 'allocated')`
      yield* writeDirect(store, lane)
      yield* count(store, lane)
      yield* expose(store, lane)
    }).pipe(Claims.inLane(store, lane))
