import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { JournalQuery, JournalState } from "../../../../application/ports/journal/Records.js"
import type { RequestJournal } from "../../../../application/ports/journal/RequestJournal.js"
import type {
  CancellationCode,
  FailedElement,
  Idempotency,
  RequestRecord
} from "../../../../application/ports/journal/Requests.js"
import type { LaneAccess } from "../../../../application/ports/journal/Transactions.js"
import * as Hex from "../../../../domain/primitives/Hex.js"
import * as Terms from "../../listing/Terms.js"
import * as Store from "../../Store.js"
import * as Claims from "./Claims.js"
import * as Ops from "./Ops.js"

/**
 * Reads and changes the journal's table `requests`, for the other files of the journal. The row of an idempotency key
 * decides between acceptance and refusal under that key.
 */

export interface FailedRow {
  readonly request_id: string
  readonly failed: string
}

export interface Row extends Terms.Place, Pick<FailedRow, "failed"> {
  readonly endpoint: string
  readonly chain_id: string
  readonly signer: string | null
  readonly body: string
  readonly previews: string | null
  readonly policies: string | null
  readonly idempotency_key: string | null
  readonly body_hash: string | null
  readonly state: "open" | "final" | "forgotten"
  readonly note: string | null
  readonly outcome: string | null
  readonly cancelled: Exclude<CancellationCode, "request_dropped"> | null
  readonly held: string | null
  readonly decision: "released" | "dropped" | null
  readonly metadata: string | null
  readonly elements: number
  readonly not_before: number | string | null
  readonly due_at: number | string | null
}

export const sealName = (requestId: string): string => `request ${requestId}`

export const previewsName = (requestId: string): string => `previews ${requestId}`

export const laneKeyColumn = (key: LaneAccess["key"]): string => JSON.stringify(key)

const readKey: (text: string) => Option.Option<LaneAccess["key"]> = Option.liftThrowable(JSON.parse)

/** An unreadable key counts as absent. */
export const laneKeyOf = (column: string | null): LaneAccess["key"] | null =>
  column === null ? null : Option.getOrNull(readKey(column))

interface KeyRow {
  readonly account_id: string
  readonly endpoint: string
  readonly idempotency_key: string
  readonly request_id: string
  /** Null: it was refused. */
  readonly body_hash: string | null
  /** Time of its refusal. */
  readonly declined_at: number | string | null
}

/** The accepted or last refused requests of idempotency keys, in the keys' order; null: none. */
export const byKeys = ({ sql }: Store.Store, keys: JournalQuery["idempotency"]) =>
  Effect.map(
    Store.inChunks(keys, (chunk) => {
      const given = chunk.map(({ accountId, endpoint, key }) => sql`(${accountId}, ${endpoint}, ${key})`)
      return sql<KeyRow>`
        select account_id, endpoint, idempotency_key, request_id, body_hash, declined_at from requests
        where (account_id, endpoint, idempotency_key) in (values ${sql.csv(given)})
          and idempotency_key is not null`
    }),
    (rows) => {
      const found = new Map(
        rows.map((row) => [JSON.stringify([row.account_id, row.endpoint, row.idempotency_key]), row])
      )
      return keys.map(
        ({ accountId, endpoint, key }) => found.get(JSON.stringify([accountId, endpoint, key])) ?? null
      )
    }
  )

/** The accepted request of a key's row; null: the key is free. */
export const keptIn = (row: KeyRow | null | undefined): JournalState["known"][number] =>
  row == null || row.body_hash === null
    ? null
    : { requestId: row.request_id, bodyHash: Hex.unsafe32(row.body_hash) }

/**
 * Locks the request until the transaction ends. Lock the request before its ops, whose states decide its end.
 */
export const locked = ({ forUpdate, sql }: Store.Store, requestId: string) =>
  Effect.map(sql<Row>`select * from requests where request_id = ${requestId} ${forUpdate}`, ([row]) => row)

/** Locks requests that may be reopened until the transaction ends, in a fixed order. */
export const lockAll = ({ forUpdate, sql }: Store.Store, requestIds: Iterable<string>) =>
  Store.forChunks(
    Store.isPostgres(sql) ? Store.distinct(requestIds) : [],
    (chunk) =>
      sql`select request_no from requests where ${sql.in("request_id", chunk)} order by request_id ${forUpdate}`
  )

/** Null for a forgotten request. */
export const failedOf = ({ failed }: Pick<FailedRow, "failed">): ReadonlyArray<FailedElement> =>
  failed === "" ? [] : JSON.parse(failed)

/** The latest failure of each index, by index. */
export const merged = (
  before: ReadonlyArray<FailedElement>,
  after: ReadonlyArray<FailedElement>
): ReadonlyArray<FailedElement> =>
  [...new Map([...before, ...after].map((element) => [element.index, element])).values()].sort(
    (one, other) => one.index - other.index
  )

export const failedColumn = (failed: ReadonlyArray<FailedElement>): string =>
  JSON.stringify(failed.map(({ code, figures, index, message }) => ({ index, code, message, figures })))

export const writeFailed = ({ sql }: Store.Store, requestId: string, failed: ReadonlyArray<FailedElement>) =>
  sql`update requests set failed = ${failedColumn(failed)} where request_id = ${requestId}`

/** The row of a request that is never accepted. */
const declined = (requestId: string, accountId: string, endpoint: string, now: number) => ({
  request_id: requestId,
  account_id: accountId,
  endpoint,
  chain_id: "",
  body: "",
  failed: "",
  state: "forgotten",
  accepted_at: now,
  declined_at: now
})

export const decline =
  (store: Store.Store): RequestJournal["Service"]["decline"] =>
  (requestId) =>
    store.transaction(
      Effect.gen(function* () {
        const { sql } = store
        const now = yield* Clock.currentTimeMillis
        // On PostgreSQL the insert waits for a concurrent transaction that inserted the same id.
        yield* sql`
          insert into requests ${sql.insert(declined(requestId, "", "", now))}
          on conflict (request_id) do nothing`
        const row = yield* locked(store, requestId)
        return row === undefined || row.state === "forgotten" ? null : Claims.laneOf(row)
      })
    )

/** The key's row is the fence: acceptances under the key conflict with it. */
export const refuse =
  (store: Store.Store): RequestJournal["Service"]["refuse"] =>
  (requestId, place) =>
    store.transaction(
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const { accountId, endpoint, key } = place
        yield* store.sql`
          insert into requests ${store.sql.insert({
            ...declined(requestId, accountId, endpoint, now),
            idempotency_key: key
          })}
          on conflict (account_id, endpoint, idempotency_key) where idempotency_key is not null
          do update set request_id = excluded.request_id, declined_at = excluded.declined_at
          where requests.declined_at is not null`
        const [row] = yield* byKeys(store, [place])
        return keptIn(row)?.requestId ?? null
      })
    )

export const note =
  (store: Store.Store): RequestJournal["Service"]["note"] =>
  (requestId, text) =>
    store.transaction(
      Effect.gen(function* () {
        const row = yield* locked(store, requestId)
        if (row === undefined) return yield* Store.refuse("the request was not accepted")
        yield* Claims.fence(store, Claims.laneOf(row))
        if (row.state !== "open") return yield* Store.refuse("the request is final")
        yield* store.sql`update requests set note = ${text} where request_id = ${requestId}`
      })
    )

/** Reopens locked requests: they are not final and have no due time. */
export const reopen = ({ sql }: Store.Store, requestIds: ReadonlyArray<string>) =>
  Effect.forEach(
    requestIds,
    (requestId) =>
      sql`
        update requests set state = 'open', outcome = null, due_at = null, unopened = coalesce(unopened, 0)
        where request_id = ${requestId} and (state = 'final' or due_at is not null)`,
    { discard: true }
  )

/** The column keeps the earlier versions' code `request_cancelled` for a dropped request. */
export const cancelledOf = ({
  cancelled,
  decision
}: Pick<Row, "cancelled" | "decision">): CancellationCode | null =>
  cancelled !== null && decision === "dropped" ? "request_dropped" : cancelled

const idempotencyOf = (row: Row): Idempotency | null =>
  row.idempotency_key === null || row.body_hash === null
    ? null
    : { key: row.idempotency_key, bodyHash: Hex.unsafe32(row.body_hash) }

type FoundRow = Row & { readonly request_id: string }

const found = ({ sql }: Store.Store, requestIds: ReadonlyArray<string>) =>
  Store.inChunks(
    requestIds,
    (ids) => sql<FoundRow>`
      select * from requests where ${sql.in("request_id", ids)} and state <> 'forgotten'`
  )

const toRecord = (
  store: Store.Store,
  row: FoundRow,
  { nonces, ops, signed }: ReturnType<Effect.Success<ReturnType<typeof Ops.readAll>>>
) =>
  Effect.gen(function* () {
    const requestId = row.request_id
    const record: RequestRecord = {
      requestId,
      accountId: row.account_id,
      endpoint: row.endpoint,
      lane: Claims.laneOf(row),
      body: yield* Effect.orElseSucceed(store.seal.open(sealName(requestId), row.body), () => null),
      idempotency: idempotencyOf(row),
      elements: row.elements,
      acceptedAt: Number(row.accepted_at),
      metadata: Terms.read(row.metadata),
      ops,
      signed,
      failed: failedOf(row),
      txHashes: Ops.hashes(nonces),
      cancelled: cancelledOf(row),
      held: row.state === "open" ? row.held : null,
      notBefore:
        row.state === "open" && row.due_at !== null && row.not_before !== null
          ? Number(row.not_before)
          : null,
      previews:
        row.previews === null
          ? null
          : yield* Effect.orElseSucceed(store.seal.open(previewsName(requestId), row.previews), () => null),
      policies: row.policies === null ? [] : JSON.parse(row.policies),
      note: row.note,
      outcome: row.outcome
    }
    return record
  })

export const request =
  (store: Store.Store): RequestJournal["Service"]["request"] =>
  (requestId) =>
    store.reading(
      Effect.gen(function* () {
        const [row] = yield* found(store, [requestId])
        return row === undefined
          ? null
          : yield* toRecord(store, row, yield* Ops.read(store, requestId, row.elements))
      })
    )

export const requests =
  (store: Store.Store): RequestJournal["Service"]["requests"] =>
  (requestIds) =>
    store.reading(
      Effect.gen(function* () {
        const rows = new Map((yield* found(store, requestIds)).map((row) => [row.request_id, row]))
        const largest = [...rows.values()].reduce((most, { elements }) => Math.max(most, elements), 0)
        const progressOf = yield* Ops.readAll(store, [...rows.keys()], largest)
        return yield* Effect.forEach(
          requestIds.flatMap((requestId) => rows.get(requestId) ?? []),
          (row) => toRecord(store, row, progressOf(row.request_id))
        )
      })
    )

export const requestOf =
  (store: Store.Store): RequestJournal["Service"]["requestOf"] =>
  (accountId, endpoint, key) =>
    store.query(Effect.map(byKeys(store, [{ accountId, endpoint, key }]), ([row]) => keptIn(row)))

export const finalAmong =
  ({ query, sql }: Store.Store): RequestJournal["Service"]["finalAmong"] =>
  (requestIds) =>
    query(
      Effect.map(
        Store.inChunks(
          requestIds,
          (chunk) => sql<{ readonly request_id: string }>`
            select request_id from requests where state <> 'open' and ${sql.in("request_id", chunk)}`
        ),
        (rows) => rows.map((row) => row.request_id)
      )
    )
