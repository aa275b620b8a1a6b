import type { Dependencies } from "../../../domain/erc4337/Dependencies.js"
import type { ElementFailure } from "../../request/Elements.js"
import type { HeldNonces } from "./HeldNonces.js"
import type { SendResult } from "./Sending.js"
import type * as Elements from "./SubmissionElements.js"

/** A request's elements, and what is under way of them; see `SubmissionState`. */
export interface State {
  readonly terms: Terms
  /** In the order of the request. */
  readonly elements: ReadonlyMap<number, Elements.Element>
  readonly phase: Phase
  readonly isAccepted: boolean
  /**
   * By `MonotonicTime`. Before acceptance, until when others are waited for. From then on, when what is left expires: the
   * sweep is earlier with a request of which nothing was signed, whichever process works on it.
   */
  readonly deadline: number
  /** Whether something that was signed may have come back: the journal has to be asked which nonces are held. */
  readonly mayHold: boolean
  /** How often a transaction was mined without the element: one of its component alone, one that it shared. */
  readonly tries: ReadonlyMap<number, number>
  readonly shared: ReadonlyMap<number, number>
  /** How often an op was prepared under a nonce of which the journal knows that it was used. */
  readonly usedNonces: number
  /** What stood in the way of accepted work at last, and how often since something was sent. */
  readonly delayed: { readonly by: ElementFailure | null; readonly times: number }
}

/** What stays as it is. */
export interface Terms {
  readonly dependencies: Dependencies
  /** Somebody else's bundler keeps nothing together: an op is given to it once the one it depends on has landed. */
  readonly isApart: boolean
  /** How long a request that is not accepted waits for others. */
  readonly patienceMillis: number
  /** How long after its acceptance, its last signature or its last outcome what is left of a request is given up. */
  readonly expiryMillis: number
}

/** By element, why it fails. */
export type Failures = ReadonlyMap<number, ElementFailure>

/** The elements of each transaction, in the order in which they are sent. */
export type Transfers = ReadonlyArray<ReadonlyArray<number>>

/** Elements that were accepted, and how far they are. */
interface Batch {
  readonly transfers: Transfers
  readonly place: number
  /** Refused because the chain is not as it was when they were prepared. */
  readonly outdated: Failures
}

export type Phase =
  /** Accepted before a restart: the journal and the chain tell what became of it. */
  | { readonly _tag: "resuming" }
  /** What became of the nonces under which something was signed? */
  | { readonly _tag: "asking" }
  | { readonly _tag: "preparing"; readonly elements: ReadonlyArray<number> }
  | { readonly _tag: "offering"; readonly transfers: Transfers }
  | ({ readonly _tag: "sending" } & Batch)
  | ({ readonly _tag: "following"; readonly result: Pick<SendResult, "delay" | "forAll"> } & Batch)
  /** The accepted rest of a batch, one of whose transactions went otherwise than prepared, is given up. */
  | { readonly _tag: "yielding"; readonly elements: ReadonlyArray<number>; readonly next: Phase }
  /** Others have to release something first. */
  | { readonly _tag: "waiting"; readonly orFail: Failures }
  | { readonly _tag: "pausing"; readonly millis: number; readonly releases: boolean }
  | { readonly _tag: "over" }

/** Where an op went that came back: a transaction that its component had for itself, or shared; or one of somebody else. */
export type Carrier = "own" | "shared" | "external"

export interface Outcomes {
  readonly landed: ReadonlyMap<number, Elements.Landed>
  /** By element: accepted, and on no way any more. */
  readonly returned: ReadonlyMap<number, Carrier>
}

/** An op that is ready, by its nonce. */
export interface Ready {
  readonly index: number
  readonly nonceKey: bigint
  readonly sequence: bigint
}

export type Event =
  | ({
      readonly _tag: "resumed"
      /** What the journal has noted. */
      readonly failed: Failures
      readonly held: HeldNonces
      readonly cancelled: ElementFailure | null
    } & Outcomes)
  /** `held`: those whose nonces are open; `isUndecided`: some are used, and by what is not known yet. */
  | {
      readonly _tag: "asked"
      readonly landed: Outcomes["landed"]
      readonly held: HeldNonces
      readonly isUndecided: boolean
    }
  | {
      readonly _tag: "prepared"
      readonly failed: Failures
      readonly done: ReadonlyArray<number>
      /** Whose windows have not begun: until when they wait, Unix seconds by the chain's clock. */
      readonly scheduled: ReadonlyMap<number, number>
      readonly transfers: ReadonlyArray<ReadonlyArray<Ready>>
    }
  /** The wallets of these elements have no nonce key left at the moment. */
  | { readonly _tag: "busy"; readonly elements: ReadonlyArray<number> }
  /** Nothing of what was to be prepared can be done, ever. */
  | { readonly _tag: "refused"; readonly failure: ElementFailure }
  /** Something stands in the way of all of it that passes. */
  | { readonly _tag: "delayed"; readonly by: ElementFailure }
  | { readonly _tag: "accepted" }
  /** Another request's op stands in the way of the element. */
  | { readonly _tag: "occupied"; readonly index: number }
  /** The element's nonce was used by an op that has landed: the node does not know, or the chain took it back. */
  | { readonly _tag: "nonceUsed"; readonly index: number }
  /** An authorisation for another configuration of the element's wallet is alive. */
  | { readonly _tag: "deploymentPending"; readonly index: number | null }
  | { readonly _tag: "cancelled"; readonly failure: ElementFailure }
  | ({ readonly _tag: "sent" } & SendResult)
  | ({ readonly _tag: "followed" } & Outcomes)
  | { readonly _tag: "yielded" }
  | { readonly _tag: "woken" }
  | { readonly _tag: "waitedInVain" }
  | { readonly _tag: "paused" }
  | { readonly _tag: "noted" }
  /** At the end: versions of failed elements that are on the chain all the same. */
  | { readonly _tag: "foundLanded"; readonly landed: Outcomes["landed"] }

export type Action =
  | { readonly _tag: "resume" }
  | { readonly _tag: "ask"; readonly elements: ReadonlyArray<number> }
  | {
      readonly _tag: "prepare"
      readonly elements: ReadonlyArray<number>
      readonly held: HeldNonces
    }
  | { readonly _tag: "accept"; readonly failed: Failures }
  | { readonly _tag: "send"; readonly place: number }
  /** Wait until none of these elements' ops may be on its way any more. */
  | { readonly _tag: "follow"; readonly elements: ReadonlyArray<number> }
  | { readonly _tag: "yield"; readonly elements: ReadonlyArray<number> }
  /** Until something is released, at most until the deadline. Wakes nobody: waiters that woke each other would do so for ever. */
  | { readonly _tag: "wait"; readonly deadline: number }
  | { readonly _tag: "pause"; readonly millis: number; readonly releases: boolean }
  /** Failures are durable before anything that follows from them. */
  | { readonly _tag: "note"; readonly failed: Failures }
  | { readonly _tag: "end" }

export interface Step {
  readonly state: State
  readonly action: Action
}
