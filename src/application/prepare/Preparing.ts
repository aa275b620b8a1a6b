import * as BigInts from "effect/BigInt"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Uint from "../../domain/primitives/Uint.js"
import type { ElementFailure } from "../failures/Elements.js"
import type { Acceptance, PreparedOp } from "../ports/journal/Records.js"
import type { DeploymentIntent } from "../ports/journal/Requests.js"
import type { Call } from "./Call.js"
import type { Offer } from "./Offer.js"
import type { Shared } from "./OpContext.js"
import type { Snapshot } from "./Snapshot.js"

/** What is prepared together, and what comes of it: the same for all kinds of calls. */

/** Calls of one request that are prepared together. What one of them depends on is among them, or over. */
export interface Batch<C extends Call = Call>
  extends Pick<Offer<C>, "calls" | "mayWait" | "requestId" | "revert"> {
  /** What its time is up for fails for itself; else it is a 400 of the whole request. */
  readonly isAccepted?: boolean
}

/** The nonce that a call is prepared under. */
export interface Nonce {
  readonly key: bigint
  /** Null: the next one of the key, behind those that are prepared before it. */
  readonly sequence: bigint | null
}

/** One look at the chain, and the calls that are prepared by it. */
export interface Input<C extends Call> {
  readonly context: Shared
  readonly batches: ReadonlyArray<Batch<C>>
  readonly snapshot: Snapshot
  readonly nonceOf: (call: C) => Nonce
}

/** What the calls of one request have become: each of them is in one of the three. */
export interface Prepared {
  /** In the order in which they are executed. */
  readonly ops: ReadonlyArray<PreparedOp>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Until when they wait, Unix seconds by the chain's clock. */
  readonly waiting: ReadonlyMap<number, number>
  /** What the wallets of the ops had. */
  readonly funds: Acceptance["funds"]
  readonly deployments: ReadonlyArray<DeploymentIntent>
  /** Elements that were found done. */
  readonly existing: ReadonlyArray<number>
}

export const nothing: Prepared = {
  ops: [],
  failed: new Map(),
  waiting: new Map(),
  funds: [],
  deployments: [],
  existing: []
}

/** Longer return values are not kept. */
const maxReturned = 16_384

export const kept = (returned: Hex.Hex): Hex.Hex | null =>
  Hex.size(returned) > maxReturned ? null : returned

/** A sum of wei that fits its field, whatever a node says. */
export const bounded = (wei: bigint): bigint => BigInts.min(wei, Uint.max(256))

/**
 * How long a measurement and its prices are relied on, milliseconds: half of the life of a signature, so that what is
 * signed at last has the other half to be mined.
 */
export const freshMillis = 300_000

/**
 * Until when an op is signed as it was prepared, Unix milliseconds. `chainTime` and `validUntil` are Unix seconds by the
 * chain's clock; a `validUntil` of 0: no end.
 */
export const goodUntil = (now: number, chainTime: number, validUntil: number): number =>
  now + (validUntil === 0 ? freshMillis : Math.min(freshMillis, Math.max(0, validUntil - chainTime) * 1_000))

/** Wallets of the calls, each once. */
export const walletsOf = (batches: ReadonlyArray<Pick<Batch, "calls">>): ReadonlyArray<Address> => [
  ...new Set(batches.flatMap(({ calls }) => calls.map(({ wallet }) => wallet)))
]
