import * as Effect from "effect/Effect"
import type { JournalError } from "../../../application/ports/journal/JournalError.js"
import type { RequestJournal } from "../../../application/ports/journal/RequestJournal.js"
import * as Terms from "../listing/Terms.js"
import * as Store from "../Store.js"
import * as Leases from "./Leases.js"
import type * as Ops from "./tables/Ops.js"

/** Requests, or authorisations, of one transaction: small, so that others wait briefly for its locks. */
const step = 10

interface Nonce {
  readonly chain_id: string
  readonly signer: string
  readonly nonce: string
}

/** The oldest final requests that nothing can change any more, kept from others until the transaction ends. */
const over = ({ forUpdate, sql }: Store.Store, before: number) =>
  Effect.map(
    sql<{ readonly request_id: string }>`
      select request_id from requests
      where state = 'final' and accepted_at < ${before}
        and not exists (
          select 1 from ops
          where ops.request_id = requests.request_id and ops.state in ('accepted', 'sent'))
        and not exists (
          select 1 from ops join handovers on handovers.op_id = ops.op_id
          where ops.request_id = requests.request_id)
        and not exists (
          select 1 from ops
          join transaction_ops on transaction_ops.op_id = ops.op_id
          join transactions on transactions.chain_id = transaction_ops.chain_id
            and transactions.signer = transaction_ops.signer and transactions.nonce = transaction_ops.nonce
          where ops.request_id = requests.request_id and transactions.state in ('signed', 'mined'))
      order by accepted_at limit ${step} ${forUpdate}`,
    (rows) => rows.map((row) => row.request_id)
  )

const rowOf = ({ sql }: Store.Store, { chain_id, nonce, signer }: Nonce) =>
  sql`chain_id = ${chain_id} and signer = ${signer} and nonce = ${nonce}`

/**
 * Deletes a transaction without ops. Hashes of a replaced nonce stay: no node knows a replaced hash, and it leads to the
 * mined one.
 */
const leave = (store: Store.Store, nonce: Nonce) =>
  Effect.gen(function* () {
    const { sql } = store
    const at = rowOf(store, nonce)
    const left = yield* sql`select op_id from transaction_ops where ${at} limit 1`
    if (left.length > 0) return
    const versions = yield* sql`select tx_hash from transaction_versions where ${at} limit 2`
    if (versions.length > 1) {
      yield* sql`update transaction_versions set raw = '0x' where ${at}`
      yield* sql`update transactions set direct = null where ${at}`
    } else {
      yield* sql`delete from transaction_versions where ${at}`
      yield* sql`delete from transactions where ${at}`
    }
  })

const forgetSome = (store: Store.Store, before: number) =>
  Effect.gen(function* () {
    const { sql } = store
    const requests = yield* over(store, before)
    if (requests.length === 0) return false
    yield* Terms.remove(store, requests)
    const ops = yield* sql<{ readonly op_id: Ops.Id }>`
      select op_id from ops where ${sql.in("request_id", requests)}`
    const nonces = new Map<string, Nonce>()
    const note = (rows: ReadonlyArray<Nonce>) => {
      for (const row of rows) nonces.set(`${row.chain_id} ${row.signer} ${row.nonce}`, row)
    }
    for (const chunk of Store.chunks(ops.map((op) => op.op_id))) {
      note(
        yield* sql<Nonce>`
          select distinct chain_id, signer, nonce from transaction_ops where ${sql.in("op_id", chunk)}`
      )
      yield* sql`delete from transaction_ops where ${sql.in("op_id", chunk)}`
      yield* sql`delete from ops where ${sql.in("op_id", chunk)}`
    }
    yield* Effect.forEach(nonces.values(), (nonce) => leave(store, nonce), { discard: true })
    yield* sql`delete from leases where ${sql.in("holder", requests)}`
    for (const table of ["webhook_deliveries", "request_events"])
      yield* sql`
        delete from ${sql(table)}
        where request_no in (select request_no from requests where ${sql.in("request_id", requests)})`
    yield* sql`
      update requests set state = 'forgotten', account_id = '', endpoint = '', chain_id = '', signer = null, lane_key = null,
        body = '', failed = '', note = null, outcome = null, idempotency_key = null, body_hash = null,
        cancelled = null, metadata = null, previews = null, policies = null
      where ${sql.in("request_id", requests)}`
    return requests.length === step
  })

/**
 * Deletes authorisations whose deadline is past retention. The outer condition repeats the check: another transaction may
 * renew a row during a lock wait.
 */
const forgetDeployments = ({ sql }: Store.Store, before: number, name = "deployments") => {
  const table = sql(name)
  const isOver = sql`deadline < ${Math.floor(before / 1_000)}`
  return Effect.map(
    sql`
      delete from ${table}
      where (chain_id, factory, create2_salt) in (
        select chain_id, factory, create2_salt from ${table}
        where ${isOver} order by deadline limit ${step}) and ${isOver}
      returning chain_id`,
    (rows) => rows.length === step
  )
}

const forgetUnbound = (store: Store.Store, before: number) =>
  forgetDeployments(store, before, "unbound_deployments")

const forgetDeclined = ({ sql }: Store.Store, before: number) =>
  Effect.map(
    sql`
      delete from requests
      where request_id in (
        select request_id from requests
        where declined_at is not null and declined_at < ${before} order by declined_at limit ${step})
      returning request_id`,
    (rows) => rows.length === step
  )

const nothing: Effect.Effect<void, JournalError> = Effect.void

export const forget =
  (store: Store.Store): RequestJournal["Service"]["forget"] =>
  (before) => {
    const all = (some: Effect.Effect<boolean, JournalError>): Effect.Effect<void, JournalError> =>
      Effect.flatMap(some, (more) => (more ? Effect.andThen(Effect.yieldNow, all(some)) : Effect.void))
    const leasesAfter = (last: Effect.Success<ReturnType<typeof Leases.forgetSome>>): typeof nothing =>
      Effect.flatMap(store.transaction(Leases.forgetSome(store, before, last)), (next) =>
        next === null ? nothing : Effect.andThen(Effect.yieldNow, leasesAfter(next))
      )
    return Effect.andThen(
      Effect.forEach(
        [forgetSome, forgetDeployments, forgetUnbound, forgetDeclined],
        (some) => all(store.transaction(some(store, before))),
        { discard: true }
      ),
      leasesAfter(null)
    )
  }
