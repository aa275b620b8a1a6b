import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { AccountId } from "./Tenants.js"

export class AuditLogError extends Data.TaggedError("AuditLogError")<{ readonly message: string }> {}

/** One act of a key. */
export interface Act {
  /** `signature`: `hash` is the digest that was signed. `transaction`: it is the transaction's hash. */
  readonly kind: "signature" | "transaction"
  /** On whose behalf; null: the operator's own. */
  readonly accountId: AccountId | null
  /** The request that led to it, as far as it is known. */
  readonly requestId: string | null
  /** The endpoint or the part of the engine. */
  readonly by: string | null
  /** Address of the key. */
  readonly signer: Address
  readonly hash: Bytes32
  /** Of a transaction. */
  readonly chainId: bigint | null
  readonly nonce: bigint | null
}

/** An act as it was recorded. */
export interface Entry extends Act {
  /** Ascending, in the order of recording. */
  readonly number: bigint
  /** Unix milliseconds. */
  readonly at: number
}

/** What to look for. Absent: whatever it is. */
export interface Question {
  readonly accountId?: AccountId
  readonly signer?: Address
  readonly hash?: Bytes32
  readonly requestId?: string
  /** Unix milliseconds, both ends included. */
  readonly from?: number
  readonly to?: number
  /** Entries below this number only: the next page. */
  readonly before?: bigint
  /** At most 1,000. */
  readonly limit: number
}

/**
 * Whether what this fiber has signed stays in the process until the journal is durable (`RequestJournal.durable`), or until
 * it has the bytes of the transaction that it is for.
 */
export const withheld: Context.Reference<boolean> = Context.Reference<boolean>("castellan/withheld", {
  defaultValue: () => false
})

/** Who signed what, when, and for whom. Nothing in it is ever changed or removed. */
export class AuditLog extends Context.Service<
  AuditLog,
  {
    /**
     * Durable when it returns: the act waits for it. Of a transaction, and of a signature that is `withheld`, it survives the
     * process when it returns, and the machine with the journal's next method that does: what was signed leaves after that.
     */
    readonly record: (act: Act) => Effect.Effect<void, AuditLogError>
    /** The newest first. */
    readonly find: (question: Question) => Effect.Effect<ReadonlyArray<Entry>, AuditLogError>
  }
>()("castellan/AuditLog") {}
