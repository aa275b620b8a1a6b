import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type {
  AllocationRequest,
  AllocationResult,
  JournalError,
  Lane,
  OpSettlement,
  SignedTransaction,
  TransactionSettlement
} from "../../application/ports/Journal.js"
import * as Store from "./Store.js"

const laneName = ({ chainId, signer }: Lane): string => `lane:${chainId}:${signer}`

/** The ops that a transaction of the request will carry; refuses those that no transaction may carry. */
const carried = ({ sql }: Store.Store, request: AllocationRequest) =>
  Effect.gen(function* () {
    const { ops, requestId } = request
    const chainId = request.chainId.toString()
    const known = yield* sql`
      select request_id from requests where request_id = ${requestId} and chain_id = ${chainId}`
    if (known.length === 0) return yield* Store.refuse("the request was not accepted on this chain")
    const ids: Array<number | string> = []
    for (const chunk of Store.chunks(ops)) {
      const rows = yield* sql<{ readonly op_id: number | string }>`
        select op_id from ops
        where request_id = ${requestId} and ${sql.in("op_index", chunk)}
          and state <> 'abandoned' and state in ('accepted', 'sent')
          and not exists (
            select 1 from transaction_ops
            join transactions on transactions.chain_id = transaction_ops.chain_id
              and transactions.signer = transaction_ops.signer and transactions.nonce = transaction_ops.nonce
            where transaction_ops.op_id = ops.op_id and transactions.state = 'signed'
          )`
      for (const row of rows) ids.push(row.op_id)
    }
    if (ids.length !== ops.length)
      return yield* Store.refuse("an op is not accepted, is final, or is in a signed transaction already")
    return ids
  })

/** The nonce to hand out, and what the transactions under way of the lane may cost. */
const next = ({ sql }: Store.Store, request: AllocationRequest) =>
  Effect.gen(function* () {
    const { signer } = request
    const chainId = request.chainId.toString()
    const signed = yield* sql<{ readonly max_cost: string }>`
      select max_cost from transactions
      where chain_id = ${chainId} and signer = ${signer} and state = 'signed'`
    const reserved = signed.reduce((sum, row) => sum + BigInt(row.max_cost), 0n)
    const [unsigned] = yield* sql<{ readonly nonce: string }>`
      select nonce from transactions
      where chain_id = ${chainId} and signer = ${signer} and state in ('free', 'allocated')
        and nonce >= ${Store.uint64(request.chainNonce)}
      order by nonce limit 1`
    if (unsigned !== undefined) return { reserved, nonce: BigInt(unsigned.nonce) }
    const [highest] = yield* sql<{ readonly nonce: string }>`
      select nonce from transactions where chain_id = ${chainId} and signer = ${signer}
      order by nonce desc limit 1`
    const after = highest === undefined ? 0n : BigInt(highest.nonce) + 1n
    return { reserved, nonce: after > request.chainNonce ? after : request.chainNonce }
  })

export const allocate =
  (store: Store.Store) =>
  (request: AllocationRequest): Effect.Effect<AllocationResult, JournalError> =>
    store.transaction(
      Effect.gen(function* () {
        const { sql } = store
        yield* Store.fits(256, [request.maxCost, request.balance])
        yield* Store.fits(64, [request.chainNonce])
        if (new Set(request.ops).size !== request.ops.length)
          return yield* Store.refuse("two ops of one transaction have the same index")
        yield* store.lock(laneName(request))
        const ids = yield* carried(store, request)
        const { nonce, reserved } = yield* next(store, request)
        yield* Store.fits(64, [nonce])
        const result: AllocationResult =
          reserved + request.maxCost > request.balance
            ? { _tag: "insufficientFunds", reserved }
            : { _tag: "allocated", nonce }
        if (result._tag === "insufficientFunds") return result
        const lane = {
          chain_id: request.chainId.toString(),
          signer: request.signer,
          nonce: Store.uint64(nonce)
        }
        yield* sql`
          insert into transactions ${sql.insert({
            ...lane,
            state: "allocated",
            request_id: request.requestId,
            max_cost: request.maxCost.toString(),
            allocated_at: yield* Clock.currentTimeMillis
          })}
          on conflict (chain_id, signer, nonce) do update set
            state = excluded.state, request_id = excluded.request_id, max_cost = excluded.max_cost,
            allocated_at = excluded.allocated_at`
        yield* sql`
          delete from transaction_ops
          where chain_id = ${lane.chain_id} and signer = ${lane.signer} and nonce = ${lane.nonce}`
        for (const chunk of Store.chunks(ids))
          yield* sql`insert into transaction_ops ${sql.insert(chunk.map((op_id) => ({ ...lane, op_id })))}`
        return result
      })
    )

export const unallocate =
  ({ lock, sql, transaction }: Store.Store) =>
  (lane: Lane, nonce: bigint): Effect.Effect<void, JournalError> =>
    transaction(
      Effect.gen(function* () {
        yield* Store.fits(64, [nonce])
        const chainId = lane.chainId.toString()
        yield* lock(laneName(lane))
        const rows = yield* sql`
          update transactions set state = 'free', request_id = null, max_cost = '0'
          where chain_id = ${chainId} and signer = ${lane.signer} and nonce = ${Store.uint64(nonce)}
            and state in ('free', 'allocated')
          returning nonce`
        if (rows.length === 0)
          return yield* Store.refuse("only a nonce that is handed out and not signed can be handed back")
        yield* sql`
          delete from transaction_ops
          where chain_id = ${chainId} and signer = ${lane.signer} and nonce = ${Store.uint64(nonce)}`
      })
    )

export const recordSigned =
  ({ lock, sql, transaction }: Store.Store) =>
  (signed: SignedTransaction): Effect.Effect<void, JournalError> =>
    transaction(
      Effect.gen(function* () {
        yield* Store.fits(64, [signed.nonce])
        yield* Store.fits(256, [signed.maxFeePerGas, signed.maxPriorityFeePerGas])
        const chainId = signed.chainId.toString()
        const nonce = Store.uint64(signed.nonce)
        yield* lock(laneName(signed))
        const rows = yield* sql`
          update transactions set state = 'signed'
          where chain_id = ${chainId} and signer = ${signed.signer} and nonce = ${nonce}
            and state in ('allocated', 'signed')
          returning nonce`
        if (rows.length === 0)
          return yield* Store.refuse("only for a nonce that is handed out and open can bytes be stored")
        yield* sql`
          insert into transaction_versions ${sql.insert({
            chain_id: chainId,
            signer: signed.signer,
            nonce,
            tx_hash: signed.txHash,
            raw: signed.raw,
            max_fee_per_gas: signed.maxFeePerGas.toString(),
            max_priority_fee_per_gas: signed.maxPriorityFeePerGas.toString(),
            signed_at: yield* Clock.currentTimeMillis
          })}
          on conflict (chain_id, signer, nonce, tx_hash) do nothing`
        const ofTransaction = sql`
          select op_id from transaction_ops
          where chain_id = ${chainId} and signer = ${signed.signer} and nonce = ${nonce}`
        const elsewhere = yield* sql`
          select other.op_id from transaction_ops as mine
          join transaction_ops as other on other.op_id = mine.op_id
          join transactions on transactions.chain_id = other.chain_id
            and transactions.signer = other.signer and transactions.nonce = other.nonce
          where mine.chain_id = ${chainId} and mine.signer = ${signed.signer} and mine.nonce = ${nonce}
            and transactions.state = 'signed'
            and not (other.chain_id = ${chainId} and other.signer = ${signed.signer} and other.nonce = ${nonce})`
        if (elsewhere.length > 0)
          return yield* Store.refuse("the transaction carries an op of another signed transaction")
        yield* sql`
          update ops set state = 'sent', tx_hash = ${signed.txHash}
          where op_id in (${ofTransaction}) and state in ('accepted', 'sent')`
        const givenUp = yield* sql`
          select op_id from ops where op_id in (${ofTransaction}) and state = 'abandoned'`
        if (givenUp.length > 0) return yield* Store.refuse("the transaction carries an op that was given up")
      })
    )

const settleOp = ({ sql }: Store.Store, { chainId, signer }: Lane, op: OpSettlement) =>
  sql`
    update ops set state = ${op.success === null ? "abandoned" : "settled"}, tx_hash = ${op.txHash},
      success = ${op.success === null ? null : Number(op.success)}, revert_data = ${op.revertData}
    where chain_id = ${chainId.toString()} and user_op_hash = ${op.userOpHash}
      and authority = ${signer} and state <> 'abandoned'
      and state in ('accepted', 'sent')`

export const settle =
  (store: Store.Store) =>
  (mined: TransactionSettlement, ops: ReadonlyArray<OpSettlement>): Effect.Effect<void, JournalError> =>
    store.transaction(
      Effect.gen(function* () {
        const { lock, sql } = store
        yield* Store.fits(64, [mined.nonce, mined.blockNumber])
        const chainId = mined.chainId.toString()
        const nonce = Store.uint64(mined.nonce)
        yield* lock(laneName(mined))
        yield* sql`
          update transactions set state = 'settled', tx_hash = ${mined.txHash},
            success = ${mined.success ? 1 : 0}, block_number = ${mined.blockNumber.toString()},
            block_hash = ${mined.blockHash}
          where chain_id = ${chainId} and signer = ${mined.signer} and nonce = ${nonce} and state = 'signed'
            and exists (
              select 1 from transaction_versions
              where chain_id = ${chainId} and signer = ${mined.signer} and nonce = ${nonce}
                and tx_hash = ${mined.txHash}
            )`
        const settled = yield* sql`
          select nonce from transactions
          where chain_id = ${chainId} and signer = ${mined.signer} and nonce = ${nonce}
            and state = 'settled' and tx_hash = ${mined.txHash}`
        if (settled.length === 0)
          return yield* Store.refuse("only the one transaction that was signed for a nonce can settle it")
        yield* Effect.forEach(ops, (op) => settleOp(store, mined, op), { discard: true })
      })
    )
