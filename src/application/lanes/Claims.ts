import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Holding } from "../ports/journal/Holding.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { LaneJournal } from "../ports/journal/LaneJournal.js"
import { type Lane, type LaneKey, laneKey } from "../ports/journal/Transactions.js"
import type { Replicas } from "../ports/Replicas.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"

export interface Claims {
  /**
   * Whether this process works on the lane. Claims the lane in the journal if it is assigned here and not yet claimed: from
   * then on every write of an earlier owner fails.
   */
  readonly take: (lane: Lane) => Effect.Effect<boolean, JournalError>
  /**
   * Records whether this process has the lane's key (default: yes). Without the key it works on the lane only while no other
   * service runs, until a process with the key claims it.
   */
  readonly keyed: (lane: Lane, isKeyed: boolean) => void
  /** Whether the last `take` succeeded and the lane is still assigned here, without reading the journal. */
  readonly holds: (lane: Lane) => boolean
  /** This process's last known claim on the lane; null: none. */
  readonly holding: (lane: Lane) => Holding | null
}

export const Claims: Context.Key<Claims, Claims> = Context.Service("castellan/LaneClaims")

/** Interval of claim renewals, milliseconds: another process may have claimed the lane. */
const trustMillis = 2_000

/** Process name of a claim without the key: it excludes no other process. */
const nobody = ""

export const make = (laneJournal: LaneJournal["Service"], replicas: Replicas["Service"]): Claims => {
  const trusted = new Map<LaneKey, { readonly until: number; readonly epoch: number }>()
  const keyless = new Set<LaneKey>()
  const take = (lane: Lane) =>
    Effect.gen(function* () {
      const name = laneKey(lane)
      if (!replicas.owns(lane)) {
        trusted.delete(name)
        return false
      }
      const now = yield* MonotonicTime.millis
      if ((trusted.get(name)?.until ?? 0) > now) return true
      const independent = yield* replicas.independent
      // Another service may have the key and work on the lane, now or after a restart.
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
      if (isKeyed) keyless.delete(laneKey(lane))
      else keyless.add(laneKey(lane))
    },
    holds: (lane) => trusted.has(laneKey(lane)) && replicas.owns(lane),
    holding: (lane) => {
      const known = trusted.get(laneKey(lane))
      return known === undefined ? null : { chainId: lane.chainId, signer: lane.signer, epoch: known.epoch }
    },
    take
  }
}
