import { elementFailure } from "../../request/Elements.js"
import * as Backoff from "../../runtime/Backoff.js"
import type { Event, Failures, Phase, State } from "./SubmissionPhases.js"
import { alike, type Changes, cancelled, changed, failed, noted, unnotedOf } from "./SubmissionProgress.js"

/** The answer of the journal to ops that are offered to it, as a part of `SubmissionState`. */

export const walletBusy = elementFailure("wallet_busy")
export const none: Failures = new Map()
export const releasing: Phase = { _tag: "pausing", millis: 0, releases: true }

/** So often an op is prepared under nonces that were used: a node that is behind, or has lost blocks, needs seconds. */
const maxUsedNonces = 8
const usedBackoff: Backoff.Backoff = { firstMillis: 100, longestMillis: 2_000 }

/** What the journal said of the ops that were offered to it. */
export const after = (
  state: State,
  { transfers }: Extract<Phase, { readonly _tag: "offering" }>,
  event: Event
): State => {
  switch (event._tag) {
    case "accepted": {
      const accepted: Changes = transfers.flat().map((index) => [index, { _tag: "accept" }])
      return {
        ...changed(noted(state, unnotedOf(state)), accepted),
        isAccepted: true,
        phase: { _tag: "sending", transfers, place: 0, outdated: none }
      }
    }
    case "occupied":
      return { ...state, phase: { _tag: "waiting", orFail: alike([event.index], walletBusy) } }
    // Leases stay: the key of that nonce is passed over by the next look.
    case "nonceUsed": {
      const { usedNonces } = state
      if (usedNonces === maxUsedNonces)
        return { ...failed(state, alike([event.index], walletBusy)), phase: releasing }
      const millis = Backoff.pauseMillis(usedBackoff, usedNonces + 1)
      return { ...state, usedNonces: usedNonces + 1, phase: { _tag: "pausing", millis, releases: false } }
    }
    case "deploymentPending": {
      const pending = event.index === null ? [] : [event.index]
      return { ...failed(state, alike(pending, elementFailure("deployment_pending"))), phase: releasing }
    }
    case "cancelled":
      return { ...cancelled(state, event.failure), phase: releasing }
    default:
      return state
  }
}
