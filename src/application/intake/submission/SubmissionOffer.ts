import { elementFailure } from "../../request/Elements.js"
import * as Backoff from "../../runtime/Backoff.js"
import type { Event, Failures, Phase, State } from "./SubmissionPhases.js"
import {
  alike,
  type Changes,
  cancelled,
  changed,
  failed,
  noted,
  renewed,
  unnotedOf
} from "./SubmissionProgress.js"

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
  event: Event,
  now: number
): State => {
  switch (event._tag) {
    case "accepted": {
      const accepted: Changes = transfers.flat().map((index) => [index, { _tag: "accept" }])
      return {
        ...changed(noted(state.isAccepted ? state : renewed(state, now), unnotedOf(state)), accepted),
        isAccepted: true,
        phase: { _tag: "sending", transfers, place: 0, outdated: none }
      }
    }
    case "occupied":
      return { ...state, phase: { _tag: "waiting", orFail: alike([event.index], walletBusy) } }
    // Leases stay: the key of that nonce is passed over by the next look.
    case "nonceUsed": {
      const { usedNonces } = state
      if (usedNonces === maxUsedNonces && !state.isAccepted)
        return { ...failed(state, alike([event.index], walletBusy)), phase: releasing }
      const times = Math.min(usedNonces + 1, maxUsedNonces)
      const millis = Backoff.pauseMillis(usedBackoff, times)
      return { ...state, usedNonces: times, phase: { _tag: "pausing", millis, releases: false } }
    }
    case "deploymentPending": {
      const pending = alike(event.index === null ? [] : [event.index], elementFailure("deployment_pending"))
      return state.isAccepted
        ? { ...state, phase: { _tag: "waiting", orFail: pending } }
        : { ...failed(state, pending), phase: releasing }
    }
    case "cancelled":
      return { ...cancelled(state, event.failure), phase: releasing }
    default:
      return state
  }
}
