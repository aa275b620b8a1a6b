import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Outcome from "../../domain/op/Outcome.js"
import type { Budgets, BudgetsError } from "../ports/Budgets.js"
import type { Receipt } from "../ports/ChainRpc.js"
import type { TransactionRecord } from "../ports/Journal.js"

/** The pot of what the service's EOA may lose by an account in a UTC day. */
export const pot = "service-eoa"

/**
 * Books what transactions of the service's own EOA have cost it beyond what their ops gave back, to the accounts for which
 * they were sent. One transaction is of one account.
 */
export interface Losses {
  /** It is in a block: the sum counts from now on, and follows the chain. */
  readonly mined: (record: TransactionRecord, receipt: Receipt) => Effect.Effect<void, BudgetsError>
  /** It is at settled depth. */
  readonly finalised: (record: TransactionRecord) => Effect.Effect<void, BudgetsError>
  /** Another transaction has its nonce for good. */
  readonly stranded: (record: TransactionRecord) => Effect.Effect<void, BudgetsError>
}

const isService = ({ access }: TransactionRecord): boolean => access.key === "serviceEoa"

const idOf = ({ nonce, signer }: TransactionRecord): string => `${pot}:${signer}:${nonce}`

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

export const make = (budgets: Budgets["Type"]): Losses => ({
  mined: (record, receipt) =>
    Effect.gen(function* () {
      if (!isService(record)) return
      const { chainId } = record
      const id = idOf(record)
      const wei = lossOf(record, receipt)
      yield* budgets.reserve([
        {
          accountId: record.access.accountId,
          chainId,
          name: pot,
          id,
          wei,
          limit: null,
          maxOpen: null,
          daily: true,
          expiresAt: (yield* Clock.currentTimeMillis) + heldMillis,
          note: ""
        }
      ])
      yield* budgets.bind(chainId, id)
      yield* budgets.land(chainId, id, wei)
    }),
  finalised: (record) =>
    isService(record) ? budgets.settle(record.chainId, idOf(record), null) : Effect.void,
  stranded: (record) => (isService(record) ? budgets.settle(record.chainId, idOf(record), 0n) : Effect.void)
})
