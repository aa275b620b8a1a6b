import * as Effect from "effect/Effect"
import type { Fragment } from "effect/sql/Statement"
import type { OpJournal } from "../../../../application/ports/journal/OpJournal.js"
import {
  direct,
  type NonceSpace,
  type OpRecord,
  type OpSettlement
} from "../../../../application/ports/journal/Requests.js"
import type { AccountId } from "../../../../application/ports/Tenants.js"
import * as EventLoop from "../../../../application/runtime/EventLoop.js"
import * as Address from "../../../../domain/primitives/Address.js"
import * as Hex from "../../../../domain/primitives/Hex.js"
import * as Store from "../../Store.js"

/**
 * Reads and changes the journal's table `ops`, for the other files of the journal.
 *
 * Gotchas: an element has one row for each version of its op. An abandoned version may have been signed, so it may
 * still land.
 */

export type Id = number | string

/** Columns that decide an op's next state. */
export interface State {
  readonly op_id: Id
  readonly request_id: string
  readonly op_index: number
  readonly entry_point: string
  readonly user_op_hash: string | null
  readonly state: OpRecord["state"]
  readonly tx_hash: string | null
}

/** Locks ops until the transaction ends. A fixed order prevents deadlocks. */
export const locked = ({ forUpdate, sql }: Store.Store, where: Fragment) => sql<State>`
  select op_id, request_id, op_index, entry_point, user_op_hash, state, tx_hash
  from ops where ${where} order by op_id ${forUpdate}`

export const lockElements = (store: Store.Store, requestId: string, indexes: ReadonlyArray<number>) => {
  const { sql } = store
  return Store.inChunks(indexes, (chunk) =>
    locked(store, sql`request_id = ${requestId} and state <> 'abandoned' and ${sql.in("op_index", chunk)}`)
  )
}

export const idsOf = (ops: ReadonlyArray<Pick<State, "op_id">>): ReadonlyArray<Id> =>
  ops.map((op) => op.op_id)

/** Moves ops to a state without an outcome. `txHash`: the service's transaction that carries them; null: none. */
export const move = (
  { sql }: Store.Store,
  ops: ReadonlyArray<State>,
  state: "accepted" | "sent" | "abandoned",
  txHash: string | null
) =>
  Store.forChunks(
    idsOf(ops),
    (ids) =>
      sql`
      update ops set state = ${state}, tx_hash = ${txHash}, success = null, revert_data = null
      where ${sql.in("op_id", ids)}`
  )

export const publish = ({ sql }: Store.Store, ops: ReadonlyArray<State>) =>
  Store.forChunks(idsOf(ops), (ids) => sql`update ops set was_public = 1 where ${sql.in("op_id", ids)}`)

export const settle = (
  { sql }: Store.Store,
  ops: ReadonlyArray<State>,
  outcomes: ReadonlyArray<OpSettlement>
) =>
  Effect.gen(function* () {
    const open = new Map(
      ops.filter((op) => op.state === "accepted" || op.state === "sent").map((op) => [op.user_op_hash, op])
    )
    const settled: Array<State> = []
    /** Most ops of a bundle have the same outcome. */
    const alike = new Map<string, { readonly outcome: OpSettlement; readonly ids: Array<State["op_id"]> }>()
    for (const outcome of outcomes) {
      const { revertData, success, txHash, userOpHash } = outcome
      const op = open.get(userOpHash)
      if (op === undefined) continue
      open.delete(userOpHash)
      settled.push({ ...op, state: "settled", tx_hash: txHash })
      const name = `${txHash} ${success} ${revertData}`
      const group = alike.get(name)
      if (group === undefined) alike.set(name, { outcome, ids: [op.op_id] })
      else group.ids.push(op.op_id)
    }
    for (const { ids, outcome } of alike.values())
      for (const chunk of Store.chunks(ids))
        yield* sql`
          update ops set state = 'settled', prepared = null, tx_hash = ${outcome.txHash}, success = ${outcome.success ? 1 : 0},
            revert_data = ${outcome.revertData}
          where ${sql.in("op_id", chunk)}`
    return settled
  })

/** Ops in a transaction of this service that may be mined. */
export const carried = ({ sql }: Store.Store, ops: ReadonlyArray<State>) =>
  Effect.map(
    Store.inChunks(
      idsOf(ops),
      (ids) => sql<{ readonly op_id: Id }>`
        select transaction_ops.op_id from transaction_ops
        join transactions on transactions.chain_id = transaction_ops.chain_id
          and transactions.signer = transaction_ops.signer and transactions.nonce = transaction_ops.nonce
        where transactions.state in ('signed', 'mined') and ${sql.in("transaction_ops.op_id", ids)}`
    ),
    (rows) => new Set(rows.map((row) => String(row.op_id)))
  )

/** The request's ops, except abandoned ones, whose nonce an op of the same element was ever signed with. */
export const holding = ({ sql }: Store.Store, requestId: string) => {
  const versions = sql.literal(`ops as version on version.request_id = ops.request_id
    and version.op_index = ops.op_index and version.entry_point = ops.entry_point and version.wallet = ops.wallet
    and version.nonce_key = ops.nonce_key and version.sequence = ops.sequence`)
  return Effect.map(
    sql<{ readonly op_id: Id }>`
      select ops.op_id from ops join ${versions}
      where ops.request_id = ${requestId} and ops.state <> 'abandoned' and version.was_public = 1
      union
      select ops.op_id from ops join ${versions} join transaction_ops on transaction_ops.op_id = version.op_id
      where ops.request_id = ${requestId} and ops.state <> 'abandoned'`,
    (rows) => new Set(rows.map((row) => String(row.op_id)))
  )
}

export interface Row extends State {
  readonly authority: string
  readonly chain_id: string
  readonly wallet: string
  readonly nonce_key: string
  readonly sequence: string
  readonly returned: string | null
  readonly success: number | null
  readonly revert_data: string | null
  /** 1: others know its signed bytes. */
  readonly was_public: number | null
}

/** Key and sequence as the unique index of nonces stores them: on SQLite without leading zeros. */
export const nonceColumns = (sql: Store.Store["sql"]): Fragment =>
  sql.onDialectOrElse({
    pg: () => sql`nonce_key, sequence`,
    orElse: () => sql`ltrim(nonce_key, '0'), ltrim(sequence, '0')`
  })

export const nonceOf = (sql: Store.Store["sql"], nonceKey: bigint, sequence: bigint): Fragment => {
  const [key, place] = [Store.nonceKey(nonceKey), Store.uint64(sequence)]
  return sql.onDialectOrElse({
    pg: () => sql`(${key}, ${place})`,
    orElse: () => sql`(ltrim(${key}, '0'), ltrim(${place}, '0'))`
  })
}

const ownerOf = (row: Pick<Row, "authority" | "chain_id" | "wallet">) => ({
  authority: Address.unsafe(row.authority),
  chainId: BigInt(row.chain_id),
  wallet: Address.unsafe(row.wallet)
})

export const spaceOf = (row: Pick<Row, "authority" | "chain_id" | "entry_point" | "wallet">): NonceSpace => ({
  ...ownerOf(row),
  entryPoint: Address.unsafe(row.entry_point)
})

export interface OwnedRow extends Row {
  readonly account_id: AccountId
}

export const opOf = (row: Omit<OwnedRow, "returned">): Omit<OpRecord, "returned"> => ({
  accountId: row.account_id,
  requestId: row.request_id,
  index: row.op_index,
  userOpHash: row.user_op_hash === null ? null : Hex.unsafe32(row.user_op_hash),
  space: row.entry_point === direct ? { ...ownerOf(row), entryPoint: direct } : spaceOf(row),
  nonceKey: BigInt(row.nonce_key),
  sequence: BigInt(row.sequence),
  state: row.state,
  txHash: row.tx_hash === null ? null : Hex.unsafe32(row.tx_hash),
  success: row.success === null ? null : row.success === 1,
  revertData: row.revert_data === null ? null : Hex.unsafe(row.revert_data)
})

const toRecord = (row: OwnedRow): OpRecord => ({
  ...opOf(row),
  returned: row.returned === null ? null : Hex.unsafe(row.returned)
})

/** Nonce of a transaction with an op of the request; all null for an op without a transaction. */
export interface Carrier {
  readonly tx_chain: string | null
  readonly signer: string | null
  readonly nonce: string | null
  readonly tx_state: "signed" | "mined" | "settled" | "foreign" | null
  readonly first_version: Id | null
  readonly newest: string | null
  readonly mined: string | null
}

/** First, newest and mined version of a row of `transactions`. */
export const versionsOf = (sql: Store.Store["sql"]) => {
  const of = (column: string, order: "asc" | "desc") => `(
    select transaction_versions.${column} from transaction_versions
    where transaction_versions.chain_id = transactions.chain_id
      and transaction_versions.signer = transactions.signer and transaction_versions.nonce = transactions.nonce
    order by version_id ${order} limit 1)`
  return sql.literal(
    `${of("version_id", "asc")} as first_version, ${of("tx_hash", "desc")} as newest, transactions.tx_hash as mined`
  )
}

const wasSigned = ({ tx_state, was_public }: Carrier & Pick<Row, "was_public">): boolean =>
  was_public === 1 || tx_state !== null

type ReadRow = OwnedRow & Carrier

const rowsOf = ({ sql }: Store.Store, where: Fragment) => sql<ReadRow>`
  select ops.*, requests.account_id, transactions.chain_id as tx_chain, transactions.signer, transactions.nonce,
    transactions.state as tx_state, ${versionsOf(sql)}
  from ops
  join requests on requests.request_id = ops.request_id
  left join transaction_ops on transaction_ops.op_id = ops.op_id
  left join transactions on transactions.chain_id = transaction_ops.chain_id
    and transactions.signer = transaction_ops.signer and transactions.nonce = transaction_ops.nonce
  where ${where}
  order by ops.op_index, ops.op_id`

const toProgress = (rows: ReadonlyArray<ReadRow>) => {
  // The transaction's `tx_hash` is renamed: the op has a column of that name.
  const records = new Map<string, OpRecord>()
  const latest = new Map<number, OpRecord>()
  for (const row of rows) {
    const id = String(row.op_id)
    const record = records.get(id) ?? toRecord(row)
    records.set(id, record)
    latest.set(row.op_index, record)
  }
  const signed = new Set(rows.filter(wasSigned).map((row) => Number(row.op_id)))
  return {
    ops: [...latest.values()],
    signed: [...signed].sort((one, other) => one - other).flatMap((id) => records.get(String(id)) ?? []),
    nonces: rows
  }
}

/** Elements per statement: reading all of a large request would block the event loop. */
const page = 1_024

/** Pages of ops of requests with at most `elements` elements each. */
const pagesOf = (store: Store.Store, where: Fragment, elements: number) => {
  if (elements <= page) return rowsOf(store, where)
  const { sql } = store
  const starts = Array.from({ length: Math.ceil(elements / page) }, (_, at) => at * page)
  return Effect.map(
    EventLoop.each(starts, (from) =>
      rowsOf(store, sql`${where} and ops.op_index >= ${from} and ops.op_index < ${from + page}`)
    ),
    (pages) => pages.flat()
  )
}

/**
 * Reads three things of a request (`elements`: their number, or some indices):
 * - the latest op of each element, by index
 * - each op that was ever in a signed transaction, in the order of acceptance
 * - the nonces of all
 */
export const read = (store: Store.Store, requestId: string, elements: number | ReadonlyArray<number> = 0) => {
  const { sql } = store
  const ofRequest = sql`ops.request_id = ${requestId}`
  const rows =
    typeof elements === "number"
      ? pagesOf(store, ofRequest, elements)
      : Store.inChunks(elements, (some) => rowsOf(store, sql`${ofRequest} and ${sql.in("op_index", some)}`))
  return Effect.map(rows, toProgress)
}

/** Likewise for several requests with at most so many elements each, by id. */
export const readAll = (store: Store.Store, requestIds: ReadonlyArray<string>, elements: number) =>
  Effect.map(
    Store.inChunks(requestIds, (ids) => pagesOf(store, store.sql.in("ops.request_id", ids), elements)),
    (rows) => {
      const own = Map.groupBy(rows, (row) => row.request_id)
      return (requestId: string) => toProgress(own.get(requestId) ?? [])
    }
  )

/** One hash for each nonce that may be or is mined, in the order of the first signatures. */
export const hashes = (carriers: ReadonlyArray<Carrier>): ReadonlyArray<Hex.Bytes32> => {
  const live = carriers.filter(
    ({ tx_state }) => tx_state === "signed" || tx_state === "mined" || tx_state === "settled"
  )
  const byNonce = new Map(live.map((it) => [`${it.tx_chain} ${it.signer} ${it.nonce}`, it]))
  return [...byNonce.values()]
    .sort((one, other) => Number(one.first_version) - Number(other.first_version))
    .flatMap(({ mined, newest }) => {
      const hash = mined ?? newest
      return hash === null ? [] : Hex.unsafe32(hash)
    })
}

export const ofRequest =
  (store: Store.Store): OpJournal["Service"]["ofRequest"] =>
  (requestId, elements) =>
    store.query(
      Effect.map(read(store, requestId, elements), ({ nonces, ops, signed }) => ({
        ops,
        signed,
        txHashes: hashes(nonces),
        hasUnmined: nonces.some(({ tx_state }) => tx_state === "signed")
      }))
    )

export const findOp =
  ({ reading, sql }: Store.Store): OpJournal["Service"]["findOp"] =>
  (accountId, chainId, userOpHash) =>
    reading(
      Effect.gen(function* () {
        // The latest op that is not abandoned, or the latest.
        for (const stage of [sql.literal("state <> 'abandoned'"), sql.literal("state = 'abandoned'")]) {
          const [row] = yield* sql<OwnedRow>`
            select ops.*, requests.account_id from ops
            join requests on requests.request_id = ops.request_id
            where ops.chain_id = ${chainId.toString()} and ops.user_op_hash = ${userOpHash} and ops.${stage}
              and requests.account_id = ${accountId}
            order by ops.op_id desc limit 1`
          if (row !== undefined) return toRecord(row)
        }
        return null
      })
    )
