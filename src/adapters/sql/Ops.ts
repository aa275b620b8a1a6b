import * as Effect from "effect/Effect"
import type { AccountId } from "../../application/ports/Accounts.js"
import type { JournalError, OpRecord } from "../../application/ports/Journal.js"
import * as Address from "../../domain/evm/Address.js"
import * as Hex from "../../domain/evm/Hex.js"
import * as Store from "./Store.js"

export const identify =
  ({ sql, transaction }: Store.Store) =>
  (
    requestId: string,
    ops: ReadonlyArray<{ readonly index: number; readonly userOpHash: Hex.Bytes32 }>
  ): Effect.Effect<void, JournalError> =>
    transaction(
      Effect.forEach(
        ops,
        ({ index, userOpHash }) =>
          Effect.gen(function* () {
            const rows = yield* sql`
              update ops set user_op_hash = ${userOpHash}
              where request_id = ${requestId} and op_index = ${index}
                and state <> 'abandoned'
                and (user_op_hash = ${userOpHash} or (state = 'accepted' and user_op_hash is null))
              returning op_id`
            if (rows.length === 0)
              return yield* Store.refuse("only an accepted op without a hash can be given one")
          }),
        { discard: true }
      )
    )

export const abandon =
  ({ sql, transaction }: Store.Store) =>
  (requestId: string, indexes: ReadonlyArray<number>): Effect.Effect<void, JournalError> =>
    transaction(
      Effect.forEach(
        Store.chunks(indexes),
        (chunk) =>
          Effect.gen(function* () {
            yield* sql`
              update ops set state = 'abandoned'
              where request_id = ${requestId} and ${sql.in("op_index", chunk)}
                and state <> 'abandoned' and state = 'accepted'`
            const kept = yield* sql`
              select op_id from ops
              where request_id = ${requestId} and ${sql.in("op_index", chunk)}
                and state <> 'abandoned' and state in ('sent', 'settled')`
            if (kept.length > 0)
              return yield* Store.refuse("an op that may be on its way, or has landed, cannot be given up")
          }),
        { discard: true }
      )
    )

interface Row {
  readonly account_id: AccountId
  readonly request_id: string
  readonly op_index: number
  readonly authority: string
  readonly entry_point: string
  readonly wallet: string
  readonly nonce_key: string
  readonly sequence: string
  readonly user_op_hash: string | null
  readonly state: OpRecord["state"]
  readonly tx_hash: string | null
  readonly success: number | null
  readonly revert_data: string | null
}

const toRecord = (chainId: bigint, row: Row): OpRecord => ({
  accountId: row.account_id,
  requestId: row.request_id,
  index: row.op_index,
  userOpHash: row.user_op_hash === null ? null : Hex.unsafe32(row.user_op_hash),
  space: {
    authority: Address.unsafe(row.authority),
    chainId,
    entryPoint: Address.unsafe(row.entry_point),
    wallet: Address.unsafe(row.wallet)
  },
  nonceKey: BigInt(row.nonce_key),
  sequence: BigInt(row.sequence),
  state: row.state,
  txHash: row.tx_hash === null ? null : Hex.unsafe32(row.tx_hash),
  success: row.success === null ? null : row.success === 1,
  revertData: row.revert_data === null ? null : Hex.unsafe(row.revert_data)
})

export const findOp =
  ({ sql, transaction }: Store.Store) =>
  (
    accountId: AccountId,
    chainId: bigint,
    userOpHash: Hex.Bytes32
  ): Effect.Effect<OpRecord | null, JournalError> =>
    transaction(
      Effect.gen(function* () {
        // The latest that is not abandoned, else the latest.
        for (const stage of [sql.literal("state <> 'abandoned'"), sql.literal("state = 'abandoned'")]) {
          const [row] = yield* sql<Row>`
            select requests.account_id, ops.* from ops
            join requests on requests.request_id = ops.request_id
            where ops.chain_id = ${chainId.toString()} and ops.user_op_hash = ${userOpHash} and ops.${stage}
              and requests.account_id = ${accountId}
            order by ops.op_id desc limit 1`
          if (row !== undefined) return toRecord(chainId, row)
        }
        return null
      })
    )
