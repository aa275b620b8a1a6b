import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Holding } from "../ports/journal/Holding.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { LaneJournal } from "../ports/journal/LaneJournal.js"
import type { Lane } from "../ports/journal/Transactions.js"
import type { Replicas } from "../ports/Replicas.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import { nameOf } from "./InFlight.js"

/** The lanes that this process works on. */
export interface Claims {
  /**
   * Whether this process works on the lane. A lane that is assigned to it and that it has not claimed yet is claimed
   * in the journal: from then on what any earlier owner still does there fails.
   */
  readonly take: (lane: Lane) => Effect.Effect<boolean, JournalError>
  /**
   * Whether this process has the key of the lane. Without it the lane is looked after where there is no other service, until one
   * that has the key claims it. A lane of which nothing was said has its key.
   */
  readonly keyed: (lane: Lane, isKeyed: boolean) => void
  /** Whether it did work on the lane when it last took it: without a question to the journal. */
  readonly holds: (lane: Lane) => boolean
  /** The claim by which this process has the lane, as far as is known; null: it has not. */
  readonly holding: (lane: Lane) => Holding | null
}

export const Claims: Context.Key<Claims, Claims> = Context.Service("castellan/LaneClaims")

/** A claim is looked at again this often: another process may have claimed the lane since. */
const trustMillis = 2_000

/** As the process of a lane: it is in nobody's way. */
const nobody = ""

export const make = (laneJournal: LaneJournal["Service"], replicas: Replicas["Service"]): Claims => {
  const trusted = new Map<string, { readonly until: number; readonly epoch: number }>()
  const keyless = new Set<string>()
  const take = (lane: Lane) =>
    Effect.gen(function* () {
      const name = nameOf(lane)
      if (!replicas.owns(lane)) {
        trusted.delete(name)
        return false
      }
      const now = yield* MonotonicTime.millis
      if ((trusted.get(name)?.until ?? 0) > now) return true
      const independent = yield* replicas.independent
      // Another service has the key, perhaps, and works on its lane by itself, or comes back and will.
      if (keyless.has(name) && independent.length > 0) {
        trusted.delete(name)
        return false
      }
      const epoch = yield* laneJournal.claim(lane, {
        process: keyless.has(name) ? nobody : replicas.process,
        independent
      })
      if (epoch === null) trusted.delete(name)
      else trusted.set(name, { until: now + trustMillis, epoch })
      return epoch !== null
    })
  return {
    keyed: (lane, isKeyed) => {
      if (isKeyed) keyless.delete(nameOf(lane))
      else keyless.add(nameOf(lane))
    },
    holds: (lane) => trusted.has(nameOf(lane)) && replicas.owns(lane),
    holding: (lane) => {
      const known = trusted.get(nameOf(lane))
      return known === undefined ? null : { chainId: lane.chainId, signer: lane.signer, epoch: known.epoch }
    },
    take
  }
}
