import type { Idempotency, Metadata } from "../ports/journal/Requests.js"
import type { Principal } from "../ports/Tenants.js"

/** On whose behalf a use case runs, and under which id its work is journalled. */
export interface Caller {
  readonly principal: Principal
  /** Unique; chosen by the host, never by the caller. */
  readonly requestId: string
  /** What makes a repeat of a writing request the same request. */
  readonly idempotency?: Idempotency | null
  /** What the caller says of a writing request for itself. */
  readonly metadata?: Metadata
  /** The request was accepted before, and goes on after a restart or a reorganisation of the chain. */
  readonly resumed?: boolean
  /** The caller does not wait for the outcome: what it asks for may be done much later. */
  readonly isAsynchronous?: boolean
  /** The chain on which an accepted request goes on, however many the operator has nodes of by now. */
  readonly chainId?: bigint
  /**
   * Told of the accepted request on which the service works: this one, or the one that has its idempotency key. Not of one
   * that has its final answer.
   */
  readonly onAccepted?: (requestId: string) => void
  /** Told of the chain that the request turns out to be about. */
  readonly onChain?: (chainId: bigint) => void
}
