import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import * as Transaction from "../../../domain/evm/Transaction.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import { AuditLogError, withheld } from "../../ports/AuditLog.js"
import { JournalError } from "../../ports/journal/JournalError.js"
import type { OpId, RecordResult } from "../../ports/journal/Records.js"
import type { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type {
  Lane,
  LaneAccess,
  TransactionRecord,
  TransactionVersion
} from "../../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../../ports/Signers.js"

/**
 * Signs a lane's transactions and records them. Signed bytes are recorded before they leave the process, and the record
 * allocates their nonce.
 *
 * Gotchas: a record call whose reply is lost may have succeeded. The journal is read again, and the bytes leave the process
 * only if they are in it.
 */

/** Stored bytes of the lane differ from the expected ones: no transaction is built on them. */
export class LaneDamaged extends Data.TaggedError("LaneDamaged")<{ readonly message: string }> {}

/** Highest prices of all versions, which a replacement must exceed, and whether a version has type 0. */
export const highestOf = (versions: ReadonlyArray<TransactionVersion>) => ({
  highest: versions.reduce(
    (most, { maxFeePerGas, maxPriorityFeePerGas }) => ({
      maxFeePerGas: BigInts.max(most.maxFeePerGas, maxFeePerGas),
      maxPriorityFeePerGas: BigInts.max(most.maxPriorityFeePerGas, maxPriorityFeePerGas)
    }),
    { maxFeePerGas: 0n, maxPriorityFeePerGas: 0n }
  ),
  legacy: versions.some(({ raw }) => !raw.startsWith("0x02"))
})

export interface Payload {
  readonly access: LaneAccess
  readonly signer: Signer
  readonly to: Address
  readonly data: Hex.Hex
  readonly value: bigint
  readonly gasLimit: bigint
  readonly prices: FeePrices
  /** Maximum layer-1 data fee in addition to the cost of its gas, wei. */
  readonly l1Fee: bigint
  /** The EOA's pending nonce and balance, just read. */
  readonly chainNonce: bigint
  readonly balance: bigint
  /** In the order of the bundle. */
  readonly ops: ReadonlyArray<TransactionRecord["ops"][number] & { readonly opId: OpId }>
  /** Op, request and expected nonce of the signer's own transaction; null: it carries ops, or only uses a nonce. */
  readonly direct: { readonly opId: OpId; readonly requestId: string; readonly nonce: bigint } | null
}

export type Recorded =
  | { readonly _tag: "recorded"; readonly record: TransactionRecord }
  | Exclude<RecordResult, { readonly _tag: "recorded" }>

type Journal = Pick<TransactionJournal["Service"], "nextNonce" | "openOf" | "record" | "replace">

/** No signature without an audit entry: fails as if the bytes could not be stored. */
const signatureOf = (signer: Signer, transaction: Transaction.Transaction) =>
  Effect.catchDefect(
    Effect.provideService(signer.sign(Transaction.signingDigest(transaction)), withheld, true),
    (defect) =>
      defect instanceof AuditLogError
        ? Effect.fail(new JournalError({ message: `not signed: ${defect.message}` }))
        : Effect.die(defect)
  )

const versionOf = (transaction: Transaction.Transaction, signature: Hex.Hex): TransactionVersion => {
  const raw = Transaction.serialize(transaction, signature)
  const { maxFeePerGas, maxPriorityFeePerGas } = transaction
  return { txHash: Transaction.hash(raw), raw, maxFeePerGas, maxPriorityFeePerGas }
}

/** Retries of a store that does not answer. */
const patience = Schedule.max([Schedule.spaced("250 millis"), Schedule.recurs(20)])

/** Runs the write; if its reply is lost, the journal decides. */
const decided = <A>(
  journal: Journal,
  lane: Lane & { readonly nonce: bigint },
  { txHash }: TransactionVersion,
  write: Effect.Effect<A, JournalError>,
  made: A
): Effect.Effect<A, JournalError> =>
  Effect.catch(write, (error) =>
    error.isFenced === true
      ? Effect.fail(error)
      : Effect.flatMap(Effect.retry(journal.openOf(lane), patience), (open) => {
          const own = open.find(({ nonce }) => nonce === lane.nonce)
          const isThere = own?.versions.some((version) => version.txHash === txHash) === true
          return isThere ? Effect.succeed(made) : Effect.fail(error)
        })
  )

/** Signs the payload with the lane's next nonce and stores the bytes. A failure leaves nothing behind. */
export const record = (
  journal: Journal,
  chainId: bigint,
  payload: Payload
): Effect.Effect<Recorded, SignerError | JournalError> =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const { access, balance, chainNonce, data, direct, gasLimit, ops, prices, signer, to, value } = payload
      const lane = { chainId, signer: signer.address }
      const { nonce } = yield* journal.nextNonce(lane, chainNonce)
      // Its spending is held for one nonce.
      if (direct !== null && direct.nonce !== nonce) return { _tag: "nonceUsed" }
      const transaction: Transaction.Transaction = { chainId, nonce, to, data, value, gasLimit, ...prices }
      const version = versionOf(transaction, yield* signatureOf(signer, transaction))
      const maxCost = gasLimit * prices.maxFeePerGas + payload.l1Fee + value
      const carried = direct === null ? ops : [{ opId: direct.opId, userOpHash: null }]
      const result = yield* decided<RecordResult>(
        journal,
        { ...lane, nonce },
        version,
        journal.record({
          ...lane,
          ...version,
          access,
          nonce,
          chainNonce,
          maxCost,
          balance,
          ops: carried.map(({ opId, userOpHash }) => ({ opId, userOpHash }))
        }),
        { _tag: "recorded" }
      )
      if (result._tag !== "recorded") return result
      return {
        _tag: "recorded",
        record: {
          ...lane,
          nonce,
          access,
          state: "signed",
          versions: [version],
          signedAt: yield* Clock.currentTimeMillis,
          ops,
          direct: direct?.requestId ?? null,
          mined: null
        }
      }
    })
  )

/** Gas of a transfer to an account without code. */
const transferGas = 21_000n

/** The EOA lacks `missing` wei for this transaction in addition to those in flight. Nothing was sent. */
export class LaneFunds extends Data.TaggedError("LaneFunds")<{ readonly missing: bigint }> {}

/** A transaction that only uses a nonce. */
export type Filler = Pick<Payload, "access" | "balance" | "chainNonce" | "prices" | "signer">

/**
 * Uses a nonce with an empty transfer to the EOA itself. It calls no contract, so it may be in flight together with any route.
 * Null: the nonce is used.
 */
export const fill = (
  journal: Journal,
  chainId: bigint,
  filler: Filler
): Effect.Effect<TransactionRecord | null, LaneFunds | SignerError | JournalError> =>
  Effect.flatMap(
    record(journal, chainId, {
      ...filler,
      to: filler.signer.address,
      data: Hex.empty,
      value: 0n,
      gasLimit: transferGas,
      l1Fee: 0n,
      ops: [],
      direct: null
    }),
    (recorded) => {
      if (recorded._tag === "recorded") return Effect.succeed(recorded.record)
      if (recorded._tag !== "insufficientFunds") return Effect.succeed(null)
      const missing = recorded.reserved + transferGas * filler.prices.maxFeePerGas - filler.balance
      return new LaneFunds({ missing })
    }
  )

/** Signs the same payload and nonce at higher prices, and stores the bytes. Null: the nonce is no longer open. */
export const replace = (
  journal: Journal,
  record: TransactionRecord,
  signer: Signer,
  prices: FeePrices
): Effect.Effect<TransactionRecord | null, LaneDamaged | SignerError | JournalError> =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const { chainId, nonce } = record
      const lane = { chainId, signer: record.signer, nonce }
      const parsed = Transaction.parse(record.versions.at(-1)?.raw ?? Hex.empty)
      if (Result.isFailure(parsed) || parsed.success.from !== signer.address)
        return yield* new LaneDamaged({ message: "the stored bytes are not a transaction of this key" })
      const transaction: Transaction.Transaction = { ...parsed.success.transaction, ...prices }
      if (transaction.chainId !== chainId || transaction.nonce !== nonce)
        return yield* new LaneDamaged({ message: "the stored bytes are of another nonce" })
      const version = versionOf(transaction, yield* signatureOf(signer, transaction))
      const raised = BigInts.max(
        transaction.maxFeePerGas - highestOf(record.versions).highest.maxFeePerGas,
        0n
      )
      const addedCost = transaction.gasLimit * raised
      const isStored = yield* decided(
        journal,
        lane,
        version,
        journal.replace({ ...lane, ...version, addedCost }),
        true
      )
      if (!isStored) return null
      return {
        ...record,
        versions: [...record.versions, version],
        signedAt: yield* Clock.currentTimeMillis
      }
    })
  )
