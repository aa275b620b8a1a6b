import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { EventData, EventKind, RequestEvent } from "../../../application/ports/journal/Events.js"
import type { Acceptance } from "../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import type { Depth } from "../../../application/ports/journal/Transactions.js"
import * as Rows from "../Rows.js"
import * as Store from "../Store.js"

/**
 * Appends events to requests and schedules their deliveries, for the other files of the journal. An event exists only
 * if the change that it reports commits.
 */

export interface NewEvent {
  readonly requestId: string
  readonly kind: EventKind
  readonly data: EventData | null
}

/** Rows of one statement, with three parameters each. */
const perStatement = 300

/** Splits events into rounds with at most one per request; each request's events keep their order. */
const rounds = (events: ReadonlyArray<NewEvent>): ReadonlyArray<ReadonlyArray<NewEvent>> => {
  const counts = new Map<string, number>()
  const parts: Array<Array<NewEvent>> = []
  for (const event of events) {
    const round = counts.get(event.requestId) ?? 0
    counts.set(event.requestId, round + 1)
    const part = parts[round] ?? []
    parts[round] = part
    part.push(event)
  }
  return parts.flatMap((part) => Store.chunks(part, perStatement))
}

interface Written {
  readonly request_no: number | string
  readonly sequence: number
  readonly subscribed: number | boolean
}

const write = (store: Store.Store, round: ReadonlyArray<NewEvent>, now: number) => {
  const { sql } = store
  const rows = round.map(
    ({ data, kind, requestId }) =>
      sql`(${requestId}, ${kind}, ${data === null ? null : JSON.stringify(data)})`
  )
  return sql<Written>`
    insert into request_events (request_no, sequence, kind, data, told_at)
    select requests.request_no, coalesce((
        select max(earlier.sequence) from request_events as earlier
        where earlier.request_no = requests.request_no), 0) + 1,
      own.column2, own.column3, cast(${now} as bigint)
    from (values ${sql.csv(rows)}) as own join requests on requests.request_id = own.column1
    where requests.state <> 'forgotten'
    order by requests.request_no
    on conflict do nothing
    returning request_no, sequence, exists (
      select 1 from webhooks
      where webhooks.account_id = (
        select requests.account_id from requests where requests.request_no = request_events.request_no)
    ) as subscribed`
}

/** Schedules deliveries of the events to the accounts' webhooks that subscribe to them. */
const scheduleDeliveries = (store: Store.Store, written: ReadonlyArray<Written>, now: number) => {
  const { sql } = store
  const subscribed = written.filter((row) => Boolean(row.subscribed))
  return Store.forChunks(
    subscribed,
    (chunk) => sql`
      insert into webhook_deliveries (request_no, sequence, webhook_no, state, attempts, owed_at, due_at)
      select told.request_no, told.sequence, webhooks.webhook_no, 'waiting', 0,
        cast(${now} as bigint), cast(${now} as bigint)
      from request_events as told
      join requests on requests.request_no = told.request_no
      join webhooks on webhooks.account_id = requests.account_id
        and (webhooks.kinds = '' or webhooks.kinds like '% ' || told.kind || ' %')
      where (told.request_no, told.sequence) in (values ${sql.csv(
        chunk.map((row) => sql`(cast(${row.request_no} as bigint), cast(${row.sequence} as integer))`)
      )})
      ${Store.forKeyShare(store, "webhooks")}`,
    perStatement
  )
}

/** Events whose sequence number a concurrent transaction took, which has since ended. */
const overtaken = ({ sql }: Store.Store, round: ReadonlyArray<NewEvent>, written: ReadonlyArray<Written>) =>
  Effect.map(
    sql<{ readonly request_no: number | string; readonly request_id: string }>`
      select request_no, request_id from requests
      where state <> 'forgotten' and ${sql.in(
        "request_id",
        round.map((event) => event.requestId)
      )}`,
    (known) => {
      const done = new Set(written.map((row) => String(row.request_no)))
      const left = new Set(
        known.filter((row) => !done.has(String(row.request_no))).map((row) => row.request_id)
      )
      return round.filter((event) => left.has(event.requestId))
    }
  )

/** Appends events to their requests. Call it last in a transaction: it may wait for others that append to the same requests. */
export const append = (store: Store.Store, events: ReadonlyArray<NewEvent>) =>
  Effect.gen(function* () {
    if (events.length === 0) return
    const now = yield* Clock.currentTimeMillis
    for (const round of rounds(events)) {
      let left = round
      while (left.length > 0) {
        const written = yield* write(store, left, now)
        yield* scheduleDeliveries(store, written, now)
        left = written.length === left.length ? [] : yield* overtaken(store, left, written)
      }
    }
  })

const firstColumns: Rows.Columns = {
  request_id: "text",
  sequence: "integer",
  kind: "text",
  data: "text",
  told_at: "bigint"
}

export const begin = (
  store: Store.Store,
  requests: ReadonlyArray<Pick<Acceptance, "accountId" | "requestId" | "schedule">>,
  now: number
) =>
  Effect.gen(function* () {
    yield* Rows.each(
      store,
      `insert into request_events (request_no, sequence, kind, data, told_at)
       select requests.request_no, given.sequence, given.kind, given.data, given.told_at
       from (%) as given join requests on requests.request_id = given.request_id`,
      firstColumns,
      requests.flatMap(({ requestId, schedule }) => [
        [requestId, 1, "accepted", null, now],
        ...(schedule === null
          ? []
          : [[requestId, 2, "scheduled", JSON.stringify({ notBefore: schedule.notBefore }), now]])
      ])
    )
    const accounts = Store.distinct(requests.map(({ accountId }) => accountId))
    const subscribed = yield* Rows.statement<{ readonly account_id: string }>(
      store,
      `select distinct account_id from webhooks where ${Rows.among(store, "account_id")}`,
      [Rows.listOf(store, accounts)]
    )
    const ears = new Set(subscribed.map((row) => row.account_id))
    const delivered = requests.filter(({ accountId }) => ears.has(accountId))
    if (delivered.length === 0) return
    const written = yield* Rows.statement<Omit<Written, "subscribed">>(
      store,
      `select request_events.request_no, sequence from requests
       join request_events on request_events.request_no = requests.request_no
       where ${Rows.among(store, "requests.request_id")}`,
      [
        Rows.listOf(
          store,
          delivered.map(({ requestId }) => requestId)
        )
      ]
    )
    yield* scheduleDeliveries(
      store,
      written.map((row) => ({ ...row, subscribed: true })),
      now
    )
  })

interface Carried {
  readonly request_id: string
  readonly op_index: number
}

export const ofElements = (
  kind: EventKind,
  data: EventData,
  requestIds: ReadonlyArray<string>,
  ops: ReadonlyArray<Carried>
): ReadonlyArray<NewEvent> => {
  const elements = new Map<string, Array<number>>()
  for (const { op_index, request_id } of ops) {
    const known = elements.get(request_id)
    if (known === undefined) elements.set(request_id, [op_index])
    else known.push(op_index)
  }
  return requestIds.map((requestId) => {
    const own = elements.get(requestId)
    return {
      requestId,
      kind,
      data: own === undefined ? data : { ...data, elements: own.sort((one, other) => one - other) }
    }
  })
}

interface Landed extends Carried {
  readonly user_op_hash: string | null
  readonly tx_hash: string | null
}

export const ofDepth = ({ blockNumber, confirmations }: Depth) => ({
  blockNumber: blockNumber.toString(),
  confirmations
})

/** Creates one event per transaction with landed ops, for each of their requests. */
export const ofLanded = (
  kind: "submitted" | "included" | "settled" | "reopened",
  ops: ReadonlyArray<Landed>,
  depths: ReadonlyArray<Depth & { readonly userOpHash: string }>
): ReadonlyArray<NewEvent> => {
  const byOp = new Map<string | null, Depth>(depths.map((depth) => [depth.userOpHash, depth]))
  const byTransaction = new Map<string, Array<Landed>>()
  for (const op of ops)
    if (op.tx_hash !== null) byTransaction.set(op.tx_hash, [...(byTransaction.get(op.tx_hash) ?? []), op])
  return [...byTransaction].flatMap(([txHash, own]) => {
    const depth = own.flatMap((op) => byOp.get(op.user_op_hash) ?? [])[0]
    const data = {
      txHash,
      ...(depth === undefined ? {} : ofDepth(depth)),
      ...(kind === "included" ? { success: true } : {})
    }
    return ofElements(kind, data, Store.distinct(own.map((op) => op.request_id)), own)
  })
}

interface Row {
  readonly sequence: number
  readonly kind: EventKind
  readonly data: string | null
  readonly told_at: number | string
}

const toEvent = ({ data, kind, sequence, told_at }: Row): RequestEvent => ({
  sequence,
  kind,
  data: data === null ? {} : JSON.parse(data),
  at: Number(told_at)
})

export const events =
  ({ query, sql }: Store.Store): RequestJournal["Service"]["events"] =>
  (requestId, after, limit) =>
    query(
      Effect.map(
        sql<Row>`
          select sequence, kind, data, told_at from request_events
          where request_no = (select request_no from requests where request_id = ${requestId})
            and sequence > ${after}
          order by sequence limit ${limit}`,
        (rows) => rows.map(toEvent)
      )
    )

export const newestEvents =
  ({ query, sql }: Store.Store): RequestJournal["Service"]["newestEvents"] =>
  (requestIds) =>
    query(
      Effect.map(
        Store.inChunks(
          requestIds,
          (chunk) => sql<{ readonly request_id: string; readonly newest: number | null }>`
            select request_id, (
                select max(sequence) from request_events where request_events.request_no = requests.request_no
              ) as newest
            from requests where ${sql.in("request_id", chunk)}`
        ),
        (rows) => new Map(rows.map(({ newest, request_id }) => [request_id, newest ?? 0]))
      )
    )
