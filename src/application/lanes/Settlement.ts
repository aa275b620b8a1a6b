import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Inclusions from "../chain/Inclusions.js"
import * as Losses from "../pay/Losses.js"
import type { BudgetsError } from "../ports/Budgets.js"
import type { OpOutcome } from "../ports/chain/Bundler.js"
import type { ChainClient, ChainRpcError, Receipt } from "../ports/chain/ChainRpc.js"
import { JournalError } from "../ports/journal/JournalError.js"
import type { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import type { OpSettlement } from "../ports/journal/Requests.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { TransactionRecord } from "../ports/journal/Transactions.js"
import * as WakeUps from "./requests/WakeUps.js"

type Ops = TransactionRecord["ops"]

/** What `look` finds of the ops, asked for the ops of one EntryPoint after the other. */
const outcomesBy = (
  ops: Ops,
  look: (
    entryPoint: Address,
    hashes: ReadonlyArray<Bytes32>
  ) => Effect.Effect<ReadonlyMap<Bytes32, OpOutcome>, ChainRpcError>
): Effect.Effect<ReadonlyArray<OpSettlement>, ChainRpcError> =>
  Effect.map(
    Effect.forEach(new Set<Address>(ops.map(({ entryPoint }) => entryPoint)), (entryPoint) =>
      look(
        entryPoint,
        ops.flatMap((op) => (op.entryPoint === entryPoint ? [op.userOpHash] : []))
      )
    ),
    (found) =>
      found.flatMap((outcomes) => [...outcomes].map(([userOpHash, outcome]) => ({ userOpHash, ...outcome })))
  )

/** Those of the ops that landed around that block, in whatever transaction. */
const landedOf = (chain: ChainClient, ops: Ops, block: bigint) =>
  outcomesBy(ops, (entryPoint, hashes) => Inclusions.find(chain, entryPoint, hashes, block))

/** What became of the ops of a mined transaction; those that its receipt does not show are looked up wherever they landed. */
const outcomesOf = (chain: ChainClient, { ops }: TransactionRecord, receipt: Receipt) =>
  outcomesBy(ops, (entryPoint, hashes) => {
    const shown = Inclusions.inReceipt(entryPoint, receipt, hashes)
    const rest = hashes.filter((hash) => !shown.has(hash))
    return Effect.map(
      Inclusions.find(chain, entryPoint, rest, receipt.blockNumber),
      (found) => new Map([...shown, ...found])
    )
  })

export interface Settlement {
  /**
   * Records a mined transaction and the outcomes of its ops, and wakes whom it concerns. `final`: it is at settled depth;
   * ops that did not land are then to go again.
   */
  readonly mined: (
    chain: ChainClient,
    record: TransactionRecord,
    receipt: Receipt,
    final: boolean
  ) => Effect.Effect<void, ChainRpcError | JournalError>
  /** A recorded transaction has reached settled depth. */
  readonly finalised: (record: TransactionRecord) => Effect.Effect<void, JournalError>
  /** A recorded transaction has left the chain again. */
  readonly vanished: (record: TransactionRecord) => Effect.Effect<void, JournalError>
  /**
   * A transaction that is none of ours has the nonce, at settled depth. It may carry the same ops all the same: a backup
   * of the database does not know of every replacement. Those that landed are done, the others are to go again.
   */
  readonly stranded: (
    chain: ChainClient,
    record: TransactionRecord,
    block: bigint
  ) => Effect.Effect<void, ChainRpcError | JournalError>
}

export interface Dependencies {
  readonly transactionJournal: TransactionJournal["Type"]
  readonly remoteOpJournal: RemoteOpJournal["Type"]
  readonly wakeUps: Pick<WakeUps.WakeUps, "notify" | "signal">
  readonly losses: Losses.Losses
  /** The final answer of some request was undone by a reorganisation. */
  readonly reopened: Effect.Effect<void>
}

export const make = ({
  losses,
  remoteOpJournal,
  reopened,
  transactionJournal,
  wakeUps
}: Dependencies): Settlement => {
  const wake = (record: TransactionRecord) => (affected: ReadonlyArray<string>) =>
    Effect.zipRight(wakeUps.notify([...affected, WakeUps.transaction(record)]), wakeUps.signal(record))

  const booked = Effect.mapError(({ message }: BudgetsError) => new JournalError({ message }))

  return {
    mined: (chain, record, receipt, final) =>
      Effect.gen(function* () {
        const { chainId, nonce, signer } = record
        const { blockHash, blockNumber, success, txHash } = receipt
        const outcomes = yield* outcomesOf(chain, record, receipt)
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
        const affected = yield* transactionJournal.settle(
          { chainId, signer, nonce, txHash, success, blockNumber, blockHash },
          outcomes,
          final
        )
        yield* wake(record)(affected)
      }),
    finalised: (record) =>
      booked(losses.finalised(record)).pipe(
        Effect.zipRight(transactionJournal.finalise(record, record.nonce)),
        Effect.flatMap(wake(record))
      ),
    vanished: (record) =>
      Effect.flatMap(transactionJournal.unsettle(record, record.nonce), (affected) =>
        Effect.zipRight(wake(record)(affected), reopened)
      ),
    stranded: (chain, record, block) =>
      Effect.gen(function* () {
        const landed = yield* landedOf(chain, record.ops, block)
        const included = yield* remoteOpJournal.recordInclusions(record.signer, record.chainId, landed)
        yield* booked(losses.stranded(record))
        const freed = yield* transactionJournal.recordExternalUse(record, record.nonce)
        // Not before the nonce is known to be somebody else's: a request that concludes would wait for a receipt of it.
        yield* wake(record)([...included, ...freed])
      })
  }
}
