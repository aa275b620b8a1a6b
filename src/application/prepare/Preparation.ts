import * as BigInts from "effect/BigInt"
import type * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Uint from "../../domain/primitives/Uint.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import type { ElementFailure } from "../failures/Elements.js"
import type { Failure } from "../failures/Failure.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { Acceptance, PreparedOp } from "../ports/journal/Records.js"
import type { DeploymentIntent } from "../ports/journal/Requests.js"
import type { Call } from "./Call.js"
import type { Offer } from "./Offer.js"
import type { Shared } from "./OpContext.js"
import type { Snapshot } from "./Snapshot.js"

/** Input and result of a joint preparation, shared by all kinds of calls. */

/** Calls of one request that are prepared together. A call's dependency is among them, or has ended. */
export interface Batch<C extends Call = Call>
  extends Pick<Offer<C>, "calls" | "mayWait" | "requestId" | "revert"> {
  /** True: a call whose time is over fails separately. Otherwise it is a 400 for the whole request. */
  readonly isAccepted?: boolean
}

/** The nonce that a call is prepared with. */
export interface Nonce {
  readonly key: bigint
  /** Null: the key's next sequence number, after the calls prepared before this one. */
  readonly sequence: bigint | null
}

/** One snapshot of the chain, and the calls to prepare on it. */
export interface Input<C extends Call> {
  readonly context: Shared
  readonly batches: ReadonlyArray<Batch<C>>
  readonly snapshot: Snapshot
  readonly nonceOf: (call: C) => Nonce
}

/** The preparation of one request's calls: each call is in `ops`, `failed`, `waiting` or `existing`. */
export interface Prepared {
  /** In execution order. */
  readonly ops: ReadonlyArray<PreparedOp>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Unix seconds by the chain's clock at which they become due. */
  readonly waiting: ReadonlyMap<number, number>
  readonly funds: Acceptance["funds"]
  readonly deployments: ReadonlyArray<DeploymentIntent>
  readonly existing: ReadonlyArray<number>
}

/**
 * The preparation of each batch, in the order of the batches. A `Failure` of a batch is its request's own. A failing
 * node, or an implementation that differs from the pinned one, fails all of them.
 */
export type Each = Effect.Effect<
  ReadonlyArray<Result.Result<Prepared, Failure>>,
  Failure,
  BundlerRpc | ChainFacts
>

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

/** Bounds a sum of wei to its field, whatever a node says. */
export const cap = (wei: bigint): bigint => BigInts.min(wei, Uint.max(256))

/**
 * Lifetime of a measurement and its prices, milliseconds. It is half of a signature's lifetime, so that an op signed at
 * the end has the other half to be mined.
 */
export const freshMillis = 300_000

/**
 * Unix milliseconds until which an op is signed as prepared. `chainTime` and `validUntil` are Unix seconds by the
 * chain's clock; `validUntil` 0: no end.
 */
export const goodUntil = (now: number, chainTime: number, validUntil: number): number =>
  now + (validUntil === 0 ? freshMillis : Math.min(freshMillis, Math.max(0, validUntil - chainTime) * 1_000))

export const walletsOf = (batches: ReadonlyArray<Pick<Batch, "calls">>): ReadonlyArray<Address> => [
  ...new Set(batches.flatMap(({ calls }) => calls.map(({ wallet }) => wallet)))
]
