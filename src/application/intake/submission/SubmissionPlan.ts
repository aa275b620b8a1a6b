import type * as Effect from "effect/Effect"
import type * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import type { Acceptance, DeploymentIntent, RequestRecord } from "../../ports/journal/Requests.js"
import type { ElementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import type * as HeldNonces from "./HeldNonces.js"
import type { SubmissionRoute } from "./Sending.js"
import type { Bounds, Ready } from "./Transfers.js"

/** What an endpoint gives to its submission: the elements, and how they are prepared. */

/** What a look at the chain made of the elements that are still to be done. */
export interface Prepared extends Bounds {
  readonly ready: ReadonlyArray<Ready>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Elements that were found done: nothing has to be sent for them. */
  readonly done: Iterable<number>
  /** Elements whose windows have not begun: until when they wait, Unix seconds by the chain's clock. None when left out. */
  readonly scheduled?: ReadonlyMap<number, number>
  readonly funds: Acceptance["funds"]
  readonly deployments: ReadonlyArray<{ readonly index: number; readonly intent: DeploymentIntent }>
  /** How many nonce keys were leased for them. */
  readonly leased: number
}

/** The wallets of these elements have no nonce key left at the moment. */
export interface Busy {
  readonly busy: ReadonlyArray<number>
}

/** A submission of some of a request's elements, beside others of the same request. */
export interface Part {
  /** Whose the nonce keys are that it leases. */
  readonly holder: string
  /** The request as it was when this life of it began; null: it was accepted in this one. */
  readonly standing: Pick<RequestRecord, "acceptedAt" | "cancelled" | "failed"> | null
}

export interface Plan<R> extends SubmissionRoute {
  readonly endpoint: string
  readonly elements: ReadonlyArray<number>
  /** What each element depends on, by index; none when left out. */
  readonly dependencies?: Dependencies.Dependencies
  /** What the op of an element calls; null, or left out: it is given as it stands, or calls nothing. */
  readonly callOf?: (index: number) => WalletCalls.Call | null
  /** The elements are not all of the request; null, or left out: they are. */
  readonly part?: Part | null
  /**
   * Reads the chain for these elements. As long as wallets are busy nothing is prepared, and it is run again later. What
   * one of them depends on is among them, or has succeeded. Elements with a held nonce are prepared under it: the journal
   * keeps its key for them.
   */
  readonly prepare: (
    elements: ReadonlyArray<number>,
    held: HeldNonces.HeldNonces
  ) => Effect.Effect<Prepared | Busy, Failure, R>
}
