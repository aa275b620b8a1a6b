import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { Fragment } from "effect/sql/Statement"
import type { JournalError } from "../../../../application/ports/journal/JournalError.js"
import type { TransactionJournal } from "../../../../application/ports/journal/TransactionJournal.js"
import type {
  Lane,
  LaneAccess,
  TransactionRecord
} from "../../../../application/ports/journal/Transactions.js"
import type { AccountId } from "../../../../application/ports/Tenants.js"
import * as Address from "../../../../domain/primitives/Address.js"
import * as Hex from "../../../../domain/primitives/Hex.js"
import * as Seal from "../../Seal.js"
import * as Store from "../../Store.js"
import * as Transactions from "./Transactions.js"

/** Reads transactions of the journal with their versions and ops, for `Journal` and `LaneRequests`. */

interface Nonce {
  readonly chain_id: string
  readonly signer: string
  readonly nonce: string
}

interface Row extends Nonce {
  readonly state: Transactions.Signed
  readonly account_id: AccountId
  readonly key_client: string | null
  readonly key_version: string | null
  readonly key_asset: string | null
  readonly rpc: string
  readonly trust: LaneAccess["trust"]
  readonly direct: string | null
  readonly tx_hash: string | null
  readonly success: number | null
  readonly block_number: string | null
  readonly block_hash: string | null
}

interface Version extends Nonce {
  readonly tx_hash: string
  readonly raw: string
  readonly max_fee_per_gas: string
  readonly max_priority_fee_per_gas: string
  readonly signed_at: number
}

interface Op extends Nonce {
  readonly request_id: string
  readonly op_index: number
  readonly user_op_hash: string | null
  readonly entry_point: string
  readonly wallet: string
  readonly nonce_key: string
}

const name = (row: Nonce): string => `${row.chain_id} ${row.signer} ${row.nonce}`

export const keyOf = (row: Pick<Row, "key_client" | "key_version" | "key_asset">): LaneAccess["key"] => {
  const { key_asset, key_client, key_version } = row
  if (key_client === null) return key_version === "treasury" ? "treasury" : "serviceEoa"
  return {
    clientId: key_client,
    ...(key_version === null ? {} : { versionId: key_version }),
    ...(key_asset === null ? {} : { assetId: key_asset })
  }
}

const minedOf = (row: Row): TransactionRecord["mined"] =>
  row.tx_hash === null || row.block_number === null || row.block_hash === null
    ? null
    : {
        txHash: Hex.unsafe32(row.tx_hash),
        success: row.success === 1,
        blockNumber: BigInt(row.block_number),
        blockHash: Hex.unsafe32(row.block_hash)
      }

const toRecord = (
  { seal }: Store.Store,
  row: Row,
  versions: ReadonlyArray<Version>,
  ops: ReadonlyArray<Op>
): Effect.Effect<TransactionRecord> =>
  Effect.gen(function* () {
    const lane: Lane = { chainId: BigInt(row.chain_id), signer: Address.unsafe(row.signer) }
    const nonce = BigInt(row.nonce)
    return {
      ...lane,
      nonce,
      access: {
        accountId: row.account_id,
        key: keyOf(row),
        rpc: yield* Seal.openUrl(seal, Transactions.sealName(lane, nonce), row.rpc),
        trust: row.trust
      },
      state: row.state === "foreign" ? "external" : row.state,
      versions: versions.map((version) => ({
        txHash: Hex.unsafe32(version.tx_hash),
        raw: Hex.unsafe(version.raw),
        maxFeePerGas: BigInt(version.max_fee_per_gas),
        maxPriorityFeePerGas: BigInt(version.max_priority_fee_per_gas)
      })),
      signedAt: Number(versions.at(-1)?.signed_at),
      ops: ops.flatMap((op) =>
        op.user_op_hash === null
          ? []
          : {
              requestId: op.request_id,
              index: op.op_index,
              userOpHash: Hex.unsafe32(op.user_op_hash),
              entryPoint: Address.unsafe(op.entry_point),
              wallet: Address.unsafe(op.wallet),
              key: BigInt(op.nonce_key)
            }
      ),
      direct: row.direct,
      mined: minedOf(row)
    }
  })

const order = (one: TransactionRecord, other: TransactionRecord): number => {
  if (one.chainId !== other.chainId) return one.chainId < other.chainId ? -1 : 1
  if (one.signer !== other.signer) return one.signer < other.signer ? -1 : 1
  return one.nonce < other.nonce ? -1 : 1
}

/** Transactions that satisfy the condition, with versions and ops, by lane and nonce. */
const load = (store: Store.Store, where: Fragment) =>
  Effect.gen(function* () {
    const { sql } = store
    const rows = yield* sql<Row>`select transactions.* from transactions where ${where}`
    if (rows.length === 0) return []
    // SQLite keeps the order of a cross join, and would begin with the whole history otherwise.
    const versions = yield* sql<Version>`
      select transaction_versions.* from transactions cross join transaction_versions
      where transaction_versions.chain_id = transactions.chain_id
        and transaction_versions.signer = transactions.signer
        and transaction_versions.nonce = transactions.nonce and ${where}
      order by transaction_versions.version_id`
    const ops = yield* sql<Op>`
      select transactions.chain_id, transactions.signer, transactions.nonce, ops.request_id, ops.op_index,
        ops.user_op_hash, ops.entry_point, ops.wallet, ops.nonce_key
      from transactions cross join transaction_ops cross join ops
      where transaction_ops.chain_id = transactions.chain_id
        and transaction_ops.signer = transactions.signer and transaction_ops.nonce = transactions.nonce
        and ops.op_id = transaction_ops.op_id and ${where}
      order by transaction_ops.position`
    const versionsOf = Arr.groupBy(versions, name)
    const opsOf = Arr.groupBy(ops, name)
    const records = yield* Effect.forEach(rows, (row) =>
      toRecord(store, row, versionsOf[name(row)] ?? [], opsOf[name(row)] ?? [])
    )
    return records.sort(order)
  })

export const open = (store: Store.Store): Effect.Effect<ReadonlyArray<TransactionRecord>, JournalError> =>
  store.reading(load(store, store.sql`transactions.state in ('signed', 'mined')`))

export const openOf =
  (store: Store.Store): TransactionJournal["Service"]["openOf"] =>
  ({ chainId, signer }) =>
    store.reading(
      load(
        store,
        store.sql`transactions.state in ('signed', 'mined') and transactions.chain_id = ${chainId.toString()}
          and transactions.signer = ${signer}`
      )
    )

export const transactionsBetween =
  (store: Store.Store): TransactionJournal["Service"]["transactionsBetween"] =>
  ({ chainId, signer }, from, below) =>
    store.reading(
      Effect.andThen(
        Store.fits(64, [from, below]),
        load(
          store,
          store.sql`transactions.chain_id = ${chainId.toString()} and transactions.signer = ${signer}
            and transactions.nonce >= ${Store.uint64(from)} and transactions.nonce < ${Store.uint64(below)}`
        )
      )
    )

/** The oldest transaction with a version of this hash that satisfies the condition. */
const byHash = (
  store: Store.Store,
  chainId: bigint,
  txHash: Hex.Bytes32,
  where: Fragment
): Effect.Effect<TransactionRecord | null, JournalError> =>
  store.reading(
    Effect.gen(function* () {
      const { sql } = store
      const [found] = yield* sql<Nonce>`
        select transactions.chain_id, transactions.signer, transactions.nonce from transaction_versions
        join transactions on transactions.chain_id = transaction_versions.chain_id
          and transactions.signer = transaction_versions.signer
          and transactions.nonce = transaction_versions.nonce
        where transaction_versions.chain_id = ${chainId.toString()}
          and transaction_versions.tx_hash = ${txHash} and ${where}
        order by transaction_versions.version_id limit 1`
      if (found === undefined) return null
      const [record] = yield* load(
        store,
        sql`transactions.chain_id = ${found.chain_id} and transactions.signer = ${found.signer}
          and transactions.nonce = ${found.nonce}`
      )
      return record ?? null
    })
  )

export const findTransaction =
  (store: Store.Store) => (accountId: AccountId, chainId: bigint, txHash: Hex.Bytes32) =>
    byHash(store, chainId, txHash, store.sql`transactions.account_id = ${accountId}`)

export const transactionOf =
  (store: Store.Store) =>
  ({ chainId, signer }: Lane, txHash: Hex.Bytes32) =>
    byHash(store, chainId, txHash, store.sql`transactions.signer = ${signer}`)
