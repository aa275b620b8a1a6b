import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Outcome from "../../domain/erc4337/Outcome.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { Budgets, BudgetsError } from "../ports/Budgets.js"
import type { ChainRpcError, Receipt } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { OpSettlement } from "../ports/journal/Requests.js"
import type { TransactionRecord } from "../ports/journal/Transactions.js"
import type { AccountId } from "../ports/Tenants.js"

/** The budget of what the service's EOA may lose by an account in a UTC day. */
export const budget = "service-eoa"

/**
 * Books what transactions of the service's own EOA have cost it beyond what their ops gave back, to the account that has
 * caused it (see `bearerOf`).
 */
export interface Losses {
  /**
   * It is in a block: the sum counts from now on, and follows the chain. Without a bearer nothing is booked: the loss is
   * the operator's.
   */
  readonly mined: (
    record: TransactionRecord,
    receipt: Receipt,
    bearer: AccountId | null
  ) => Effect.Effect<void, BudgetsError>
  /** It is at settled depth. */
  readonly finalised: (record: TransactionRecord) => Effect.Effect<void, BudgetsError>
  /** Another transaction has its nonce for good. */
  readonly stranded: (record: TransactionRecord) => Effect.Effect<void, BudgetsError>
}

const isService = ({ access }: TransactionRecord): boolean => access.key === "serviceEoa"

/** What all holds of a transaction begin with. */
const nameOf = ({ nonce, signer }: TransactionRecord): string => `${budget}:${signer}:${nonce}:`

const idOf = (record: TransactionRecord, bearer: AccountId): string => `${nameOf(record)}${bearer}`

/** Where an op of a transaction landed. */
type Landed = Pick<OpSettlement, "txHash" | "userOpHash">

/** What `bearerOf` asks about other transactions. */
export interface Others {
  /** The account of the lane's transaction with that hash; null: the journal has none. */
  readonly accountOf: (txHash: Bytes32) => Effect.Effect<AccountId | null, JournalError>
  /** Who sent a transaction, as the node says; null: it knows none of that hash. */
  readonly senderOf: (txHash: Bytes32) => Effect.Effect<Address | null, ChainRpcError>
}

/**
 * The account that bears what a mined transaction has lost; null: the operator.
 *
 * - None of its ops landed elsewhere: the account of the transaction.
 * - One landed in another transaction of the lane, so that this one reverted: that transaction's account. Its ops ran the
 *   code that took the op.
 * - One landed in a transaction that the EOA has signed and the journal does not know: nobody's account. The key is used
 *   elsewhere too, which is for the operator to end.
 * - One landed in a transaction of somebody else: the account of the transaction. The op was not bound to the EOA, or it
 *   could not have landed there, and its account has chosen that.
 */
export const bearerOf = (
  record: TransactionRecord,
  receipt: Receipt,
  landed: ReadonlyArray<Landed>,
  { accountOf, senderOf }: Others
): Effect.Effect<AccountId | null, JournalError | ChainRpcError> =>
  Effect.gen(function* () {
    const own = record.access.accountId
    const places = new Map(landed.map(({ txHash, userOpHash }) => [userOpHash, txHash]))
    const elsewhere = record.ops
      .map(({ userOpHash }) => places.get(userOpHash))
      .find((txHash) => txHash !== undefined && txHash !== receipt.txHash)
    if (elsewhere === undefined) return own
    const other = yield* accountOf(elsewhere)
    if (other !== null) return other
    return (yield* senderOf(elsewhere)) === record.signer ? null : own
  })

/** Wei; 0 when it was paid for. */
export const lossOf = ({ ops }: Pick<TransactionRecord, "ops">, receipt: Receipt): bigint => {
  const { effectiveGasPrice, gasUsed, l1Fee = 0n, logs } = receipt
  const entryPoint = ops[0]?.entryPoint
  const outcomes = entryPoint === undefined ? [] : [...Outcome.parse(entryPoint, logs).values()]
  const paid = outcomes.reduce((sum, { actualGasCost }) => sum + actualGasCost, 0n)
  const cost = gasUsed * effectiveGasPrice + l1Fee
  return cost > paid ? cost - paid : 0n
}

/** How long it is known before it is at settled depth, milliseconds; it is bound at once. */
const heldMillis = 86_400_000

export const make = (budgets: Budgets["Service"]): Losses => {
  /** Ids of what is held for a transaction: of several bearers when a reorganisation has changed who it is. */
  const idsOf = (record: TransactionRecord) =>
    Effect.map(budgets.open(record.chainId), (holds) =>
      holds.filter(({ id }) => id.startsWith(nameOf(record))).map(({ id }) => id)
    )

  const settle = (record: TransactionRecord, wei: bigint | null) =>
    Effect.gen(function* () {
      if (!isService(record)) return
      for (const id of yield* idsOf(record)) yield* budgets.settle(record.chainId, id, wei)
    })

  const mined: Losses["mined"] = (record, receipt, bearer) =>
    Effect.gen(function* () {
      if (!isService(record)) return
      const { chainId } = record
      const id = bearer === null ? null : idOf(record, bearer)
      for (const other of yield* idsOf(record)) if (other !== id) yield* budgets.land(chainId, other, 0n)
      const wei = lossOf(record, receipt)
      if (bearer === null || id === null)
        return yield* Effect.annotateLogs(
          Effect.logError("service EOA lost a transaction to one signed outside the service"),
          { txHash: receipt.txHash, wei: wei.toString() }
        )
      yield* budgets.reserve([
        [
          {
            accountId: bearer,
            chainId,
            name: budget,
            id,
            wei,
            limit: null,
            maxOpen: null,
            daily: true,
            expiresAt: (yield* Clock.currentTimeMillis) + heldMillis
          }
        ]
      ])
      yield* budgets.bind({ chainId, id, wei }, "")
      yield* budgets.land(chainId, id, wei)
    })

  return {
    mined,
    finalised: (record) => settle(record, null),
    stranded: (record) => settle(record, 0n)
  }
}
