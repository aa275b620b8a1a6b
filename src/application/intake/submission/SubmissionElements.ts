import type * as Hex from "../../../domain/primitives/Hex.js"
import type { OpOutcome } from "../../ports/chain/Bundler.js"
import type { ElementFailure } from "../../request/Elements.js"
import type { HeldNonce } from "./HeldNonces.js"

/** An element whose op is on the chain. */
export interface Landed extends OpOutcome {
  readonly userOpHash: Hex.Bytes32
  /** What its call returned in the last simulation before it was sent; null: nothing that was kept. */
  readonly returned: Hex.Hex | null
}

/**
 * What is known of one element of a request.
 *
 * - `open`: nothing of it is on its way, and nothing keeps it to a nonce
 * - `held`: something was signed for it under this nonce, and left the process: it goes under this nonce or not at all
 * - `underWay`: accepted under a nonce; it is being signed and sent, or was sent
 * - `landed`: some version of it is on the chain
 * - `failed`: it comes to nothing; `isNoted`: the journal knows
 * - `scheduled`: its window has not begun; nothing of it is on its way, and nothing is kept for it
 * - `done`: it was found done already, by somebody else or earlier
 */
export type Element =
  | { readonly _tag: "open" }
  | { readonly _tag: "held"; readonly nonce: HeldNonce }
  | { readonly _tag: "underWay" }
  /** `until`: Unix seconds by the chain's clock. */
  | { readonly _tag: "scheduled"; readonly until: number }
  | { readonly _tag: "landed"; readonly outcome: Landed }
  | { readonly _tag: "failed"; readonly failure: ElementFailure; readonly isNoted: boolean }
  | { readonly _tag: "done" }

/** What happens to one element. */
export type Change =
  | { readonly _tag: "fail"; readonly failure: ElementFailure }
  /** What was never signed is given up; what is held to a nonce goes on. */
  | { readonly _tag: "cancel"; readonly failure: ElementFailure }
  | { readonly _tag: "accept" }
  | { readonly _tag: "include"; readonly outcome: Landed }
  /** Its op is on no way any more, and did not land. */
  | { readonly _tag: "return" }
  | { readonly _tag: "hold"; readonly nonce: HeldNonce }
  /** Nothing keeps it to a nonce. */
  | { readonly _tag: "free" }
  | { readonly _tag: "note" }
  | { readonly _tag: "schedule"; readonly until: number }
  | { readonly _tag: "do" }

export const open: Element = { _tag: "open" }
const underWay: Element = { _tag: "underWay" }
const done: Element = { _tag: "done" }

/** Of an element that is still to be brought onto the chain. */
const ofWaiting = (element: Element, change: Change): Element => {
  switch (change._tag) {
    case "fail":
      return { _tag: "failed", failure: change.failure, isNoted: false }
    case "cancel":
      return element._tag === "held" ? element : { _tag: "failed", failure: change.failure, isNoted: false }
    case "accept":
      return underWay
    case "hold":
      return { _tag: "held", nonce: change.nonce }
    case "return":
    case "free":
      return open
    case "schedule":
      return { _tag: "scheduled", until: change.until }
    case "do":
      return done
    default:
      return element
  }
}

/**
 * What becomes of an element. What landed stays so, whatever is said of it; what failed does too, unless some version of
 * it turns out to be on the chain.
 */
export const step = (element: Element, change: Change): Element => {
  if (change._tag === "include")
    return element._tag === "done" ? element : { _tag: "landed", outcome: change.outcome }
  switch (element._tag) {
    case "open":
    case "held":
      return ofWaiting(element, change)
    case "underWay":
      if (change._tag === "return") return open
      return change._tag === "fail" ? ofWaiting(element, change) : element
    case "failed":
      return change._tag === "note" ? { ...element, isNoted: true } : element
    case "scheduled":
      return change._tag === "fail" || change._tag === "cancel" ? ofWaiting(element, change) : element
    case "landed":
    case "done":
      return element
  }
}

export const isWaiting = ({ _tag }: Element): boolean => _tag === "open" || _tag === "held"
