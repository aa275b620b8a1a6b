import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Inclusions from "../chain/Inclusions.js"
import * as Metrics from "../observe/Metrics.js"
import * as Losses from "../payers/Losses.js"
import type { BudgetsError } from "../ports/Budgets.js"
import type { ChainClient, ChainRpcError, Receipt } from "../ports/chain/ChainRpc.js"
import { JournalError } from "../ports/journal/JournalError.js"
import type { OpSettlement } from "../ports/journal/Requests.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Lane, TransactionRecord } from "../ports/journal/Transactions.js"

/**
 * Records the submissions, receipts, reorganisations and external uses of nonces that nodes show. Then it notifies the
 * requests concerned.
 *
 * Gotchas: losses are booked before the journal changes, so a failure in between repeats both.
 */

type Ops = TransactionRecord["ops"]

/** Outcomes of a transaction's ops, which share one EntryPoint, as `outcomesOf` finds them. */
const outcomesBy = (
  ops: Ops,
  outcomesOf: (
    entryPoint: Address,
    hashes: ReadonlyArray<Bytes32>
  ) => Effect.Effect<ReadonlyMap<Bytes32, Inclusions.LandedOp>, ChainRpcError>,
  confirmations: number
): Effect.Effect<ReadonlyArray<OpSettlement>, ChainRpcError> => {
  const [first] = ops
  if (first === undefined) return Effect.succeed([])
  const hashes = ops.map(({ userOpHash }) => userOpHash)
  return Effect.map(outcomesOf(first.entryPoint, hashes), (outcomes) =>
    [...outcomes].map(([userOpHash, outcome]) => ({ userOpHash, ...outcome, confirmations }))
  )
}

/** Outcomes of a mined transaction's ops; ops missing in its receipt are searched for on the chain. */
const outcomesOf = (
  chain: ChainClient,
  { ops }: TransactionRecord,
  receipt: Receipt,
  confirmations: number
) =>
  outcomesBy(
    ops,
    (entryPoint, hashes) => {
      const { blockNumber } = receipt
      const shown = Inclusions.inReceipt(entryPoint, receipt, hashes)
      const rest = hashes.filter((hash) => !shown.has(hash))
      return Effect.map(
        Inclusions.find(chain, entryPoint, rest, blockNumber),
        (found) =>
          new Map([...[...shown].map(([hash, it]) => [hash, { ...it, blockNumber }] as const), ...found])
      )
    },
    confirmations
  )

/** A request's id begins with the Unix milliseconds of its arrival (UUID version 7). */
const arrivedAt = (requestId: string): number => Number.parseInt(requestId.replace("-", "").slice(0, 12), 16)

const measure = (
  { chainId, ops, signer }: TransactionRecord,
  { effectiveGasPrice, gasUsed, l1Fee = 0n }: Receipt,
  outcomes: ReadonlyArray<OpSettlement>
) =>
  Effect.gen(function* () {
    const chain = chainId.toString()
    yield* Metrics.note(Metrics.gasPaid, { chain, signer }, Number(gasUsed * effectiveGasPrice + l1Fee))
    const now = yield* Clock.currentTimeMillis
    const requests = new Map(ops.map(({ requestId, userOpHash }) => [userOpHash, requestId]))
    for (const { success, userOpHash } of outcomes) {
      yield* Metrics.count(Metrics.opsSettled, { chain, outcome: success ? "success" : "failed" })
      const millis = now - arrivedAt(requests.get(userOpHash) ?? "")
      if (millis >= 0) yield* Metric.update(Metrics.inclusionSeconds, millis / 1_000)
    }
  })

export interface Seen {
  readonly confirmations: number
  /** At settled depth. */
  readonly final: boolean
}

/** External transaction that used a nonce, at settled depth. */
export interface ExternalUse {
  readonly blockNumber: bigint
  /** Newest block at settled depth, and the confirmations of that depth. */
  readonly settledTo: bigint
  readonly confirmations: number
}

export interface Settlement {
  /** A node accepted the newest versions of these transactions. */
  readonly submitted: (
    lane: Lane,
    records: ReadonlyArray<Pick<TransactionRecord, "nonce" | "versions">>
  ) => Effect.Effect<void, JournalError>
  /**
   * Records a mined transaction and its ops' outcomes, and notifies their requests. At settled depth, ops that did not land
   * become ready again.
   */
  readonly mined: (
    chain: ChainClient,
    record: TransactionRecord,
    receipt: Receipt,
    seen: Seen
  ) => Effect.Effect<void, ChainRpcError | JournalError>
  readonly finalised: (record: TransactionRecord, confirmations: number) => Effect.Effect<void, JournalError>
  readonly vanished: (record: TransactionRecord) => Effect.Effect<void, JournalError>
  /**
   * An external transaction used the nonce, at settled depth. It may carry the same ops, since a restored backup lacks later
   * replacements. Landed ops are done; the others become ready again. False: nothing was recorded, because an op is in a block
   * that is not at settled depth.
   */
  readonly stranded: (
    chain: ChainClient,
    record: TransactionRecord,
    use: ExternalUse
  ) => Effect.Effect<boolean, ChainRpcError | JournalError>
}

export interface Listener {
  /** These requests of the lane changed; others may proceed. */
  readonly affected: (lane: Lane, requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  /** `isForGood`: at settled depth; ops that the transaction carried and does not show are ready again. */
  readonly mined: (record: TransactionRecord, isForGood: boolean) => Effect.Effect<void>
  readonly reopened: Effect.Effect<void>
  readonly notifyEvents: Effect.Effect<void>
}

export interface Dependencies {
  readonly transactionJournal: TransactionJournal["Service"]
  readonly losses: Losses.Losses
  readonly listener: Listener
}

export const make = ({ listener, losses, transactionJournal }: Dependencies): Settlement => {
  const { affected, mined, notifyEvents, reopened } = listener

  const booked = Effect.mapError(({ message }: BudgetsError) => new JournalError({ message }))

  return {
    submitted: (lane, records) =>
      Effect.tap(
        transactionJournal.recordSubmitted(
          lane,
          records.flatMap(({ nonce, versions }) => {
            const newest = versions.at(-1)
            return newest === undefined ? [] : [{ nonce, txHash: newest.txHash }]
          })
        ),
        notifyEvents
      ),
    mined: (chain, record, receipt, { confirmations, final }) =>
      Effect.gen(function* () {
        const { chainId, nonce, signer } = record
        const { blockHash, blockNumber, success, txHash } = receipt
        const outcomes = yield* outcomesOf(chain, record, receipt, confirmations)
        const bearer = yield* Losses.bearerOf(record, receipt, outcomes, {
          accountOf: (hash) =>
            Effect.map(
              transactionJournal.transactionOf({ chainId, signer }, hash),
              (it) => it?.access.accountId ?? null
            ),
          senderOf: (hash) => Effect.map(chain.transaction(hash), (it) => it?.from ?? null)
        })
        yield* booked(losses.mined(record, receipt, bearer))
        if (final) yield* booked(losses.finalised(record))
        const requestIds = yield* transactionJournal.settle(
          { chainId, signer, nonce, txHash, success, blockNumber, blockHash, confirmations },
          outcomes,
          final
        )
        if (record.state === "signed") yield* measure(record, receipt, outcomes)
        yield* affected(record, requestIds)
        yield* mined({ ...record, mined: receipt }, final)
      }),
    finalised: (record, confirmations) =>
      booked(losses.finalised(record)).pipe(
        Effect.andThen(transactionJournal.finalise(record, record.nonce, confirmations)),
        Effect.flatMap((requestIds) => affected(record, requestIds)),
        Effect.andThen(mined(record, true))
      ),
    vanished: (record) =>
      Effect.flatMap(transactionJournal.unsettle(record, record.nonce), (requestIds) =>
        Effect.andThen(affected(record, requestIds), reopened)
      ),
    stranded: (chain, record, { blockNumber, confirmations, settledTo }) =>
      Effect.gen(function* () {
        const landed = yield* outcomesBy(
          record.ops,
          (entryPoint, hashes) => Inclusions.find(chain, entryPoint, hashes, blockNumber),
          confirmations
        )
        // The nonce is not watched afterwards, so an outcome that a reorganisation can undo must not become final.
        if (landed.some((op) => op.blockNumber > settledTo)) return false
        yield* booked(losses.stranded(record))
        yield* affected(record, yield* transactionJournal.recordExternalUse(record, record.nonce, landed))
        return true
      })
  }
}
