import type { Idempotency, Metadata } from "../ports/journal/Requests.js"
import type { Principal } from "../ports/Tenants.js"

/** The principal that a use case runs for, and the id in the journal. */
export interface Caller {
  readonly principal: Principal
  /** Unique; chosen by the host, never by the caller. */
  readonly requestId: string
  /** Identifies repeats of a writing request. */
  readonly idempotency?: Idempotency | null
  /** Unix milliseconds. Absent: now. */
  readonly arrivedAt?: number
  /** The caller's own data for a writing request. */
  readonly metadata?: Metadata
  /** The request was accepted before, and continues after a restart or a reorganisation. */
  readonly resumed?: boolean
  /** The caller does not wait for the outcome, so the work may be done much later. */
  readonly isAsynchronous?: boolean
  /** The chain of a resumed request, since the operator may have nodes of several chains since. */
  readonly chainId?: bigint
  /**
   * Receives the accepted request that the service works on: this one, or the one with its idempotency key. Not called
   * for a request with a final answer.
   */
  readonly onAccepted?: (requestId: string) => void
  /** The version that the request replaces; absent: any. */
  readonly ifMatch?: number
  /** Receives the request's chain. */
  readonly onChain?: (chainId: bigint) => void
}

/** Author of a version that the principal stores. */
export const authorOf = ({ keyId }: Principal): string => (keyId === null ? "account" : `key:${keyId}`)
