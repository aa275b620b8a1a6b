import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Transaction from "../../domain/evm/Transaction.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { AuditLogError, withheld } from "../ports/AuditLog.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"
import { JournalError } from "../ports/journal/JournalError.js"
import type { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type {
  Lane,
  LaneAccess,
  Route,
  SignedTransaction,
  TransactionRecord,
  TransactionVersion
} from "../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import * as InFlight from "./InFlight.js"

/** One transaction that a lane shall carry. */
export interface Payload {
  readonly access: LaneAccess
  readonly ops: TransactionRecord["ops"]
  /** The request whose own transaction it is, when it carries no ops. */
  readonly direct: string | null
  readonly chain: ChainClient
  readonly chainId: bigint
  readonly signer: Signer
  readonly to: Address
  readonly data: Hex.Hex
  readonly value: bigint
  readonly gasLimit: bigint
  readonly prices: FeePrices
  /** Wei that layer 1 may ask for the transaction's data, beside what its gas costs. */
  readonly l1Fee: bigint
  /** See `AllocationRequest`. */
  readonly drainedTo: bigint
  /** The EOA's pending nonce and its balance, as just read. */
  readonly chainNonce: bigint
  readonly balance: bigint
}

/** A transaction that only uses a nonce. */
export type Filler = Pick<
  Payload,
  "access" | "chain" | "chainId" | "signer" | "prices" | "chainNonce" | "balance"
>

/** Gas of a transfer to an account without code. */
const transferGas = 21_000n

/** The EOA lacks `missing` wei for this transaction beside those under way. Nothing was sent. */
export class LaneFunds extends Data.TaggedError("LaneFunds")<{ readonly missing: bigint }> {}

/** A transaction of another route is in flight in the lane. Nothing was sent. */
export class OtherRoute extends Data.TaggedError("OtherRoute")<Lane> {}

/** Bytes of the lane that are not those that the journal should hold: nothing is built on them. */
export class LaneDamaged extends Data.TaggedError("LaneDamaged")<{ readonly message: string }> {}

export interface NonceManager {
  /**
   * Runs while no other work of the lane does. What a transaction is built from (nonce, balance, simulation) is read
   * inside, so that it is of the moment.
   */
  readonly exclusive: <A, E, R>(lane: Lane, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Allocates the lane's next nonce, signs, and stores the bytes; inside `exclusive`. The caller then has them
   * broadcast by the monitor: once they are stored they count as sent.
   */
  readonly sign: (
    payload: Payload
  ) => Effect.Effect<TransactionRecord, LaneFunds | OtherRoute | SignerError | JournalError>
  /** The same for a transfer of nothing to the EOA itself, which calls nobody: it goes beside transactions of any route. */
  readonly fill: (payload: Filler) => Effect.Effect<TransactionRecord, LaneFunds | SignerError | JournalError>
  /** Whether the journal has no signed transaction beside which one of this route may not go (see `Route`). */
  readonly admits: (lane: Lane, route: Route, drainedTo: bigint) => Effect.Effect<boolean, JournalError>
  /** The nonce as the journal knows it now; null: it is settled, or somebody else's. */
  readonly current: (record: TransactionRecord) => Effect.Effect<TransactionRecord | null, JournalError>
  /**
   * Signs the same payload at higher prices under the same nonce, and stores the bytes; inside `exclusive`. The record is
   * `current` there.
   */
  readonly replace: (
    record: TransactionRecord,
    signer: Signer,
    prices: FeePrices
  ) => Effect.Effect<TransactionRecord, LaneDamaged | SignerError | JournalError>
}

export const NonceManager: Context.Key<NonceManager, NonceManager> = Context.Service("castellan/NonceManager")

/** What a replacement has to be above, the highest of all versions, and whether it is of type 0. */
export const standing = (versions: ReadonlyArray<TransactionVersion>) => ({
  highest: versions.reduce(
    (most, { maxFeePerGas, maxPriorityFeePerGas }) => ({
      maxFeePerGas: BigInts.max(most.maxFeePerGas, maxFeePerGas),
      maxPriorityFeePerGas: BigInts.max(most.maxPriorityFeePerGas, maxPriorityFeePerGas)
    }),
    { maxFeePerGas: 0n, maxPriorityFeePerGas: 0n }
  ),
  legacy: versions.some(({ raw }) => !raw.startsWith("0x02"))
})

/** A signature that the audit log takes no entry of is not made: the store fails, as where the bytes are stored. */
const signatureOf = (signer: Signer, transaction: Transaction.Transaction) =>
  Effect.catchDefect(
    Effect.provideService(signer.sign(Transaction.signingDigest(transaction)), withheld, true),
    (defect) =>
      defect instanceof AuditLogError
        ? Effect.fail(new JournalError({ message: `not signed: ${defect.message}` }))
        : Effect.die(defect)
  )

const laneOf = ({ chainId, signer }: Lane): Lane => ({ chainId, signer })

/** Of a store that does not answer. */
const patience = Schedule.max([Schedule.spaced("250 millis"), Schedule.recurs(20)])

/** The lanes of this process. */
export const make = (transactionJournal: TransactionJournal["Service"]): NonceManager => {
  const locks = new Map<string, Semaphore.Semaphore>()

  const lockOf = ({ chainId, signer }: Lane): Semaphore.Semaphore => {
    const key = `${chainId}:${signer}`
    const known = locks.get(key)
    if (known !== undefined) return known
    const lock = Semaphore.makeUnsafe(1)
    locks.set(key, lock)
    return lock
  }

  const version = (transaction: Transaction.Transaction, signature: Hex.Hex): TransactionVersion => {
    const raw = Transaction.serialize(transaction, signature)
    const { maxFeePerGas, maxPriorityFeePerGas } = transaction
    return { txHash: Transaction.hash(raw), raw, maxFeePerGas, maxPriorityFeePerGas }
  }

  const current: NonceManager["current"] = (record) =>
    Effect.map(
      transactionJournal.openOf(laneOf(record)),
      (open) => open.find(({ nonce }) => nonce === record.nonce) ?? null
    )

  const admits: NonceManager["admits"] = (lane, route, drainedTo) =>
    Effect.map(transactionJournal.openOf(laneOf(lane)), (open) =>
      open.every(
        (record) =>
          record.state !== "signed" ||
          record.nonce < drainedTo ||
          InFlight.goTogether(route, InFlight.routeOf(record))
      )
    )

  /** A store that fails may have stored: then the nonce is used, and its bytes must leave. */
  const store = (
    record: TransactionRecord,
    signed: TransactionVersion,
    rest: Pick<SignedTransaction, "addedCost" | "drainedTo" | "replaces">
  ) =>
    Effect.catch(
      transactionJournal.recordSigned({ ...laneOf(record), nonce: record.nonce, ...rest, ...signed }),
      (error) =>
        Effect.flatMap(
          Effect.retry(current(record), patience),
          (stored): Effect.Effect<void, JournalError> =>
            stored?.versions.some(({ txHash }) => txHash === signed.txHash) === true
              ? Effect.void
              : Effect.fail(error)
        )
    )

  const sign = (payload: Payload) =>
    Effect.gen(function* () {
      const { access, chainId, direct, gasLimit, ops, prices, signer, value } = payload
      const lane = { chainId, signer: signer.address }
      const maxCost = gasLimit * prices.maxFeePerGas + payload.l1Fee + value
      const allocation = yield* transactionJournal.allocate({
        ...lane,
        access,
        chainNonce: payload.chainNonce,
        drainedTo: payload.drainedTo,
        maxCost,
        balance: payload.balance,
        ops,
        direct
      })
      if (allocation._tag === "insufficientFunds")
        return yield* new LaneFunds({ missing: allocation.reserved + maxCost - payload.balance })
      if (allocation._tag === "otherRoute") return yield* new OtherRoute(lane)
      const { nonce } = allocation
      const transaction: Transaction.Transaction = {
        chainId,
        nonce,
        to: payload.to,
        data: payload.data,
        value,
        gasLimit,
        ...prices
      }
      const signature = yield* Effect.tapError(signatureOf(signer, transaction), () =>
        transactionJournal.unallocate(lane, nonce)
      )
      const signed = version(transaction, signature)
      const record: TransactionRecord = {
        ...lane,
        nonce,
        access,
        state: "signed",
        versions: [signed],
        signedAt: yield* Clock.currentTimeMillis,
        ops,
        direct,
        mined: null
      }
      yield* store(record, signed, { addedCost: 0n, drainedTo: payload.drainedTo, replaces: false })
      return record
    })

  const fill = (filler: Filler) =>
    Effect.catchTag(
      sign({
        ...filler,
        ops: [],
        direct: null,
        to: filler.signer.address,
        data: Hex.empty,
        value: 0n,
        gasLimit: transferGas,
        l1Fee: 0n,
        drainedTo: 0n
      }),
      "OtherRoute",
      () => Effect.die(new Error("a transaction that calls nobody has no route"))
    )

  const replace = (record: TransactionRecord, signer: Signer, prices: FeePrices) =>
    Effect.gen(function* () {
      const newest = record.versions.at(-1)
      const parsed = Transaction.parse(newest?.raw ?? Hex.empty)
      if (Result.isFailure(parsed) || parsed.success.from !== signer.address)
        return yield* new LaneDamaged({ message: "the stored bytes are not a transaction of this key" })
      const { chainId, nonce } = record
      const transaction: Transaction.Transaction = { ...parsed.success.transaction, ...prices }
      if (transaction.chainId !== chainId || transaction.nonce !== nonce)
        return yield* new LaneDamaged({ message: "the stored bytes are of another nonce" })
      const signature = yield* signatureOf(signer, transaction)
      const signed = version(transaction, signature)
      const { highest } = standing(record.versions)
      const raised = BigInts.max(transaction.maxFeePerGas - highest.maxFeePerGas, 0n)
      yield* store(record, signed, {
        addedCost: transaction.gasLimit * raised,
        drainedTo: 0n,
        replaces: true
      })
      const replaced: TransactionRecord = {
        ...record,
        versions: [...record.versions, signed],
        signedAt: yield* Clock.currentTimeMillis
      }
      return replaced
    })

  return {
    admits,
    current,
    exclusive: (lane, effect) => lockOf(lane).withPermits(1)(effect),
    sign: (payload) => Effect.uninterruptible(sign(payload)),
    fill: (filler) => Effect.uninterruptible(fill(filler)),
    replace: (record, signer, prices) => Effect.uninterruptible(replace(record, signer, prices))
  }
}
