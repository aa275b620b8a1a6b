import * as Effect from "effect/Effect"
import type { Settlement } from "../Settlement.js"
import * as Entry from "./Entry.js"
import type * as WatchedLane from "./WatchedLane.js"

/**
 * Tells of what nodes have taken and no receipt shows, all of a round at once. Of what was mined as soon, the settlement
 * tells both. What cannot be told is told in the next round.
 */
export const tell = (
  settlement: Pick<Settlement, "submitted">,
  lane: Pick<WatchedLane.WatchedLane, "isCurrent">,
  turn: ReadonlyArray<Entry.Entry>
): Effect.Effect<void> => {
  const taken = turn.filter((entry) => lane.isCurrent(entry) && Entry.isUntold(entry))
  const [first] = taken
  if (first === undefined) return Effect.void
  const records = taken.map(({ record }) => record)
  return Effect.matchCauseEffect(settlement.submitted(first.record, records), {
    onFailure: (cause) => Effect.logDebug("what nodes have taken is told later", cause),
    onSuccess: () =>
      Effect.sync(() => {
        for (const entry of taken) entry.isTold = true
      })
  })
}
