import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

/** The audit log cannot be read or written; nothing is signed without its entry. */
export class AuditLogError extends Data.TaggedError("AuditLogError")<{ readonly message: string }> {}

/** One use of a key. */
export interface Act {
  /** `signature`: `hash` is the signed digest. `transaction`: `hash` is the transaction's hash. */
  readonly kind: "signature" | "transaction"
  /** The account that the key acted for; null: the operator. */
  readonly accountId: AccountId | null
  /** The request that caused the act; null: unknown. */
  readonly requestId: string | null
  /** The endpoint, or the part of the engine. */
  readonly by: string | null
  readonly signer: Address
  readonly hash: Bytes32
  /** Set for transactions. */
  readonly chainId: bigint | null
  readonly nonce: bigint | null
}

/** One signature, written before the key signs. */
export interface Entry extends Act {
  /** Ascending, in the order of recording. */
  readonly number: bigint
  /** Unix milliseconds. */
  readonly at: number
}

/** Search criteria. An absent field matches any value. */
export interface Question {
  readonly accountId?: AccountId
  readonly signer?: Address
  readonly hash?: Bytes32
  readonly requestId?: string
  /** Unix milliseconds, both ends included. */
  readonly from?: number
  readonly to?: number
  /** Only entries below this number: the next page. */
  readonly before?: bigint
  /** At most 1,000. */
  readonly limit: number
}

/**
 * Whether this fiber's signatures stay in the process until the journal is durable (`RequestJournal.durable`), or until
 * the journal has the bytes of the transaction that they are for.
 */
export const withheld: Context.Reference<boolean> = Context.Reference<boolean>("castellan/withheld", {
  defaultValue: () => false
})

/** Records which key signed which hash, when, and for which account. Entries are never changed or removed. */
export class AuditLog extends Context.Service<
  AuditLog,
  {
    /**
     * Durable when it returns: the act waits for it. The record of a transaction, or of a `withheld` signature, then
     * survives the process, and the machine with the journal's next method that does; the signature leaves the process
     * only after that.
     */
    readonly record: (act: Act) => Effect.Effect<void, AuditLogError>
    /** Newest first. */
    readonly find: (question: Question) => Effect.Effect<ReadonlyArray<Entry>, AuditLogError>
  }
>()("castellan/AuditLog") {}
