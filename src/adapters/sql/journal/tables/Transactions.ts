import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { TransactionJournal } from "../../../../application/ports/journal/TransactionJournal.js"
import type { Lane, LaneAccess } from "../../../../application/ports/journal/Transactions.js"
import * as Store from "../../Store.js"
import * as Events from "../Events.js"
import * as Claims from "./Claims.js"
import * as Ops from "./Ops.js"
import * as RequestRows from "./RequestRows.js"

/** Reads and changes the journal's table `transactions` by lane and nonce, for the other files of the journal. */

/** Condition for a nonce's rows, in every table with lane and nonce. */
export const at = ({ sql }: Store.Store, { chainId, signer }: Lane, nonce: bigint) =>
  sql`chain_id = ${chainId.toString()} and signer = ${signer} and nonce = ${Store.uint64(nonce)}`

export const sealName = ({ chainId, signer }: Lane, nonce: bigint): string =>
  `transaction ${chainId} ${signer} ${nonce}`

export const accessColumns = (
  { seal }: Store.Store,
  lane: Lane,
  nonce: bigint,
  { accountId, key, rpc, trust }: LaneAccess
) => ({
  account_id: accountId,
  key_client: typeof key === "string" ? null : key.clientId,
  key_version: typeof key === "string" ? (key === "serviceEoa" ? null : key) : (key.versionId ?? null),
  key_asset: typeof key === "string" ? null : (key.assetId ?? null),
  rpc: seal.close(sealName(lane, nonce), rpc === null ? "" : Redacted.value(rpc)),
  trust
})

/** Stored states of a signed transaction. `foreign` is `external` in the port; the word stays for earlier versions. */
export type Signed = "signed" | "mined" | "settled" | "foreign"

export interface State {
  readonly state: Signed
  readonly max_cost: string
  readonly tx_hash: string | null
  readonly block_number: string | null
  readonly block_hash: string | null
  /** 1: its `submitted` event exists. */
  readonly submitted: number
}

/**
 * Reads the nonce's row, its ops, and whether a version has that hash. Locks its requests before its ops: a reorganisation
 * may revert a mined transaction.
 */
export const find = (store: Store.Store, lane: Lane, nonce: bigint, txHash: string | null = null) =>
  Effect.gen(function* () {
    const { sql } = store
    yield* Store.fits(64, [nonce])
    yield* Claims.fence(store, lane)
    const nonceAt = at(store, lane, nonce)
    const [row] = yield* sql<State & { readonly has_version: number | boolean }>`
      select state, max_cost, tx_hash, block_number, block_hash, submitted, exists (
        select 1 from transaction_versions where ${nonceAt} and transaction_versions.tx_hash = ${txHash}
      ) as has_version
      from transactions where ${nonceAt}`
    if (row === undefined) return null
    const carried = sql`op_id in (select op_id from transaction_ops where ${nonceAt})`
    if (row.state === "mined") {
      const of = yield* sql<Pick<Ops.State, "request_id">>`select request_id from ops where ${carried}`
      yield* RequestRows.lockAll(
        store,
        of.map((op) => op.request_id)
      )
    }
    const ops = yield* Ops.locked(store, carried)
    return {
      row,
      ops,
      hasVersion: Boolean(row.has_version),
      concerned: Store.distinct(ops.map((op) => op.request_id))
    }
  })

export const newest = (store: Store.Store, lane: Lane, nonce: bigint) =>
  Effect.map(
    store.sql<{ readonly tx_hash: string }>`
      select tx_hash from transaction_versions where ${at(store, lane, nonce)} order by version_id desc limit 1`,
    ([row]) => row?.tx_hash ?? null
  )

interface RouteRow {
  readonly entry_point: string | null
}

/** Whether none of these signed transactions has another route. */
export const admits = (route: string | null, signed: ReadonlyArray<RouteRow>): boolean =>
  route === null || signed.every(({ entry_point }) => entry_point === null || entry_point === route)

/** The EntryPoint of a transaction's ops, which all have the same. */
const entryPointOf = ({ sql }: Store.Store) =>
  sql.literal(`(
  select ops.entry_point from transaction_ops join ops on ops.op_id = transaction_ops.op_id
  where transaction_ops.chain_id = transactions.chain_id and transaction_ops.signer = transactions.signer
    and transaction_ops.nonce = transactions.nonce
  limit 1) as entry_point`)

/** Refuses a request that may not have a direct transaction in this lane. */
export const checkDirect = (store: Store.Store, { chainId }: Lane, requestId: string) =>
  Effect.gen(function* () {
    const row = yield* RequestRows.locked(store, requestId)
    if (row?.chain_id !== chainId.toString())
      return yield* Store.refuse("the request was not accepted on this chain")
    if (row.state !== "open") return yield* Store.refuse("the request is final")
    const signed = yield* store.sql`
      select nonce from transactions
      where direct = ${requestId} and direct is not null and state in ('signed', 'mined', 'settled')`
    if (signed.length > 0) return yield* Store.refuse("the request has a signed transaction already")
  })

const page = 100

/**
 * The lowest nonce, from the chain's nonce on, without a signed transaction. `isGap`: the journal does not know the
 * transaction before the chain's nonce.
 */
export const nextNonce = (
  { sql }: Store.Store,
  { chainId, chainNonce, signer }: Lane & { readonly chainNonce: bigint }
) =>
  Effect.gen(function* () {
    const before = chainNonce - 1n
    let isGap = before >= 0n
    for (let nonce = chainNonce, from = BigInts.max(before, 0n); ; from = nonce) {
      yield* Store.fits(64, [nonce])
      const rows = yield* sql<{ readonly nonce: string }>`
        select nonce from transactions
        where chain_id = ${chainId.toString()} and signer = ${signer} and nonce >= ${Store.uint64(from)}
        order by nonce limit ${sql.literal(String(page))}`
      for (const row of rows) {
        const found = BigInt(row.nonce)
        if (found === before) isGap = false
        else if (found !== nonce) return { nonce, isGap }
        else nonce++
      }
      if (rows.length < page) {
        yield* Store.fits(64, [nonce])
        return { nonce, isGap }
      }
    }
  })

export const inFlight = (store: Store.Store, { chainId, signer }: Lane) =>
  store.sql<RouteRow & { readonly nonce: string; readonly max_cost: string }>`
    select nonce, max_cost, ${entryPointOf(store)} from transactions
    where chain_id = ${chainId.toString()} and signer = ${signer} and state in ('signed', 'mined')
      and state = 'signed'`

interface Submitted extends Pick<Ops.State, "request_id" | "op_index"> {
  readonly nonce: string
}

export const recordSubmitted =
  (store: Store.Store): TransactionJournal["Service"]["recordSubmitted"] =>
  (lane, transactions) =>
    Effect.gen(function* () {
      const { sql } = store
      yield* Claims.fence(store, lane)
      const hashes = new Map(transactions.map(({ nonce, txHash }) => [Store.uint64(nonce), txHash]))
      const inLane = sql`chain_id = ${lane.chainId.toString()} and signer = ${lane.signer}`
      for (const chunk of Store.chunks([...hashes.keys()])) {
        const nonces = sql.in("nonce", chunk)
        const fresh = yield* sql<{ readonly nonce: string }>`
            update transactions set submitted = 1
            where ${inLane} and ${nonces} and state = 'signed' and submitted = 0
            returning nonce`
        if (fresh.length === 0) continue
        const carried = yield* sql<Submitted>`
            select carried.nonce, ops.request_id, ops.op_index
            from (select nonce, op_id from transaction_ops where ${inLane} and ${sql.in(
              "nonce",
              fresh.map((row) => row.nonce)
            )}) as carried
            join ops on ops.op_id = carried.op_id`
        yield* Events.append(
          store,
          fresh
            .toSorted((one, other) => (one.nonce < other.nonce ? -1 : 1))
            .flatMap(({ nonce }) => {
              const ops = carried.filter((op) => op.nonce === nonce)
              const concerned = Store.distinct(ops.map((op) => op.request_id))
              return Events.ofElements("submitted", { txHash: hashes.get(nonce) }, concerned, ops)
            })
        )
      }
    }).pipe(Claims.inLane(store, lane))
