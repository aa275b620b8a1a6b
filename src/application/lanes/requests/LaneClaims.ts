import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Journal, JournalError } from "../../ports/journal/Journal.js"
import type { Lane } from "../../ports/journal/Lanes.js"
import type { LaneOwnership } from "../../ports/LaneOwnership.js"

/** The lanes that this process works on. */
export interface LaneClaims {
  /**
   * Whether this process works on the lane. A lane that is assigned to it and that it has not claimed yet is claimed
   * in the journal: from then on what any earlier owner still does there fails.
   */
  readonly take: (lane: Lane) => Effect.Effect<boolean, JournalError>
}

export const LaneClaims: Context.Tag<LaneClaims, LaneClaims> = Context.GenericTag("castellan/LaneClaims")

/** A claim is looked at again this often: another process may have claimed the lane since. */
const trustMillis = 2_000

const nameOf = ({ chainId, signer }: Lane): string => `${chainId}:${signer}`

export const make = (journal: Journal["Type"], ownership: LaneOwnership["Type"]): LaneClaims => {
  const trusted = new Map<string, number>()
  return {
    take: (lane) =>
      Effect.gen(function* () {
        const name = nameOf(lane)
        if (!ownership.owns(lane)) {
          trusted.delete(name)
          return false
        }
        const now = yield* Clock.currentTimeMillis
        if ((trusted.get(name) ?? 0) > now) return true
        const independent = yield* ownership.independent
        const isClaimed = yield* journal.claim(lane, { process: ownership.process, independent })
        if (isClaimed) trusted.set(name, now + trustMillis)
        else trusted.delete(name)
        return isClaimed
      })
  }
}
