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

/** The budget for the service EOA's losses through an account in a UTC day. */
export const budget = "service-eoa"

/**
 * Books the cost of the service EOA's transactions beyond their ops' refunds to the account that caused it (see
 * `bearerOf`).
 */
export interface Losses {
  /**
   * It is in a block: the sum counts from now on, and follows the chain. Without a bearer nothing is booked: the loss
   * is the operator's.
   */
  readonly mined: (
    record: TransactionRecord,
    receipt: Receipt,
    bearer: AccountId | null
  ) => Effect.Effect<void, BudgetsError>
  /** It is at settled depth. */
  readonly finalised: (record: TransactionRecord) => Effect.Effect<void, BudgetsError>
  /** Another transaction has its nonce, at settled depth. */
  readonly stranded: (record: TransactionRecord) => Effect.Effect<void, BudgetsError>
}

const isService = ({ access }: TransactionRecord): boolean => access.key === "serviceEoa"

const nameOf = ({ nonce, signer }: TransactionRecord): string => `${budget}:${signer}:${nonce}:`

const idOf = (record: TransactionRecord, bearer: AccountId): string => `${nameOf(record)}${bearer}`

type Landed = Pick<OpSettlement, "txHash" | "userOpHash">

export interface Others {
  /** The account of the lane's transaction with that hash; null: not in the journal. */
  readonly accountOf: (txHash: Bytes32) => Effect.Effect<AccountId | null, JournalError>
  /** The sender of a transaction, by the node; null: unknown to it. */
  readonly senderOf: (txHash: Bytes32) => Effect.Effect<Address | null, ChainRpcError>
}

/**
 * The account that bears a mined transaction's loss; null: the operator.
 *
 * - None of its ops landed elsewhere: the account of the transaction.
 * - An op landed in another transaction of the lane, which made this one revert: the other transaction's account. Its
 *   ops ran the code that took the op.
 * - An op landed in a transaction that the EOA signed and the journal does not know: the operator. The key is also used
 *   elsewhere, which only the operator can end.
 * - An op landed in a foreign transaction: the account of the transaction. The op was not bound to the EOA, or it could
 *   not have landed there, and its account has chosen that.
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

/** Wei; 0 when the ops paid for it. */
export const lossOf = ({ ops }: Pick<TransactionRecord, "ops">, receipt: Receipt): bigint => {
  const { effectiveGasPrice, gasUsed, l1Fee = 0n, logs } = receipt
  const entryPoint = ops[0]?.entryPoint
  const outcomes = entryPoint === undefined ? [] : [...Outcome.parse(entryPoint, logs).values()]
  const paid = outcomes.reduce((sum, { actualGasCost }) => sum + actualGasCost, 0n)
  const cost = gasUsed * effectiveGasPrice + l1Fee
  return cost > paid ? cost - paid : 0n
}

/** Life of the hold, milliseconds; it is bound immediately. */
const heldMillis = 86_400_000

export const make = (budgets: Budgets["Service"]): Losses => {
  /** Ids of the holds for a transaction: several when a reorganisation has changed its bearer. */
  const idsOf = (record: TransactionRecord) =>
    Effect.map(budgets.open(record.chainId, nameOf(record)), (holds) => holds.map(({ id }) => id))

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
            window: "day",
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
