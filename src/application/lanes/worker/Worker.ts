import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Metrics from "../../observe/Metrics.js"
import * as Troubles from "../../observe/Troubles.js"
import { isFenced } from "../../ports/journal/JournalError.js"
import type { Acceptance } from "../../ports/journal/Records.js"
import {
  type Lane,
  type LaneAccess,
  type LaneKey,
  laneKey,
  type TransactionRecord
} from "../../ports/journal/Transactions.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import { type Dependencies, delayOf, type Next, pause, requestKeys, type State, whole } from "./LaneState.js"
import type * as Bundle from "./rules/Bundle.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import * as Reconcile from "./rules/Reconcile.js"
import * as Sign from "./Sign.js"
import * as Turn from "./Turn.js"

/**
 * The worker of a lane: one fiber brings the lane's ready ops into transactions turn by turn, whichever process accepted them.
 * It sleeps while there is nothing to do.
 */

export interface Worker {
  /** Ready ops, or room for them, may exist; `hasUnopened`: also requests with elements to open. */
  readonly wake: (lane: Lane, hasUnopened?: boolean) => Effect.Effect<void>
  /** These requests were accepted here just now. */
  readonly accepted: (
    lane: Lane,
    requests: ReadonlyArray<Pick<Acceptance, "requestId" | "unopened">>
  ) => Effect.Effect<void>
  /**
   * A transaction of the lane was mined, perhaps under a nonce that the lane waits for. `isForGood`: ops that it carried and
   * does not show are ready again.
   */
  readonly mined: (record: TransactionRecord, isForGood: boolean) => Effect.Effect<void>
  /** See `delayOf`. Only the process that has the lane knows. */
  readonly delayOf: (lane: Lane, requestId: string) => string | null
  /** Unknown nonces of the lane's EOA that delay its work; null: none. */
  readonly unknown: (
    lane: Lane
  ) => { readonly nonces: ReadonlyArray<bigint>; readonly access: LaneAccess } | null
}

/** Wait of a woken worker: requests that are accepted meanwhile share its bundle. */
const gather = EventLoop.turns(3)

export const make = (dependencies: Dependencies): Worker => {
  const { inFlight, monitor, scope } = dependencies
  const troubles = Troubles.make()
  const workers = new Map<LaneKey, State>()

  const crashOf = ({ lane }: State): Troubles.Trouble => ({
    what: "a lane's worker failed; retrying",
    place: laneKey(lane),
    isDelay: true
  })

  const stranded = new Map<string, Troubles.Trouble>()

  const tell = ({ lane, pauses }: State) =>
    Effect.gen(function* () {
      if (pauses.size === 0 && stranded.size === 0) return
      const place = laneKey(lane)
      const now = new Set<string>()
      for (const [key, { obstacles, why }] of pauses) {
        if (obstacles < Pauses.reportedObstacles) continue
        const subject = key === whole ? place : `op ${key}`
        const trouble = { what: "work of a lane waits; retrying", place, subject, isDelay: true }
        now.add(`${place} ${key}`)
        stranded.set(`${place} ${key}`, trouble)
        yield* troubles.failed(trouble, Cause.fail(why))
      }
      for (const [name, trouble] of stranded)
        if (trouble.place === place && !now.has(name)) {
          stranded.delete(name)
          yield* troubles.passed(trouble)
        }
      yield* Metric.update(Metrics.workStranded, stranded.size)
    })

  const next = (state: State): Effect.Effect<Next> =>
    Turn.ofOwner({ ...dependencies, state }).pipe(
      Effect.tap(() => troubles.passed(crashOf(state))),
      Effect.catchCause((cause) =>
        Effect.gen(function* () {
          if (isFenced(cause)) return "leave"
          yield* troubles.failed(crashOf(state), cause)
          // This state may be outdated, and the journal may have a transaction that is not followed.
          state.fresh.clear()
          state.isDoubtful = true
          yield* pause(state, [whole], "the worker failed")
          return { at: Pauses.nextEnd(state.pauses, yield* MonotonicTime.millis) }
        })
      )
    )

  const loop = (state: State): Effect.Effect<void> =>
    Effect.gen(function* () {
      yield* gather
      while (true) {
        state.isAskedAgain = false
        // Before the turn: changes during it wake the lane.
        const changed = inFlight.changed(state.lane)
        const done = yield* next(state)
        if (done === "again") {
          yield* Effect.yieldNow
          continue
        }
        yield* tell(state)
        const isIdle = done !== "leave" && done.at === null && state.queue.ops.length === 0
        if (done === "leave" || (isIdle && !state.isAskedAgain)) {
          state.isRunning = false
          state.pauses = Pauses.none()
          if (done === "leave") {
            workers.delete(laneKey(state.lane))
            // Before another fiber of the lane watches its transactions.
            yield* monitor.leave(state.lane)
          }
          return yield* tell(state)
        }
        const woken = Effect.andThen(changed, gather)
        if (done.at === null) yield* woken
        else {
          const millis = Math.max(done.at - (yield* MonotonicTime.millis), 1)
          yield* Effect.raceFirst(woken, Effect.sleep(millis))
        }
      }
    })

  const fresh = (lane: Lane): State => ({
    lane: { chainId: lane.chainId, signer: lane.signer },
    epoch: null,
    isDoubtful: false,
    queue: Queue.empty,
    pauses: Pauses.none(),
    standings: new Map(),
    most: Queue.bundle,
    sequences: new Map(),
    servedAt: new Map(),
    mined: [],
    turns: 0,
    newest: null,
    signatures: Sign.make(scope, () => inFlight.wake(lane)),
    reconcile: Reconcile.clear,
    expiresAt: 0,
    opensAt: null,
    repricings: new Set(),
    mayReprice: false,
    fresh: new Set(),
    latest: 0n,
    knownTo: null,
    claimed: { at: 0, since: 0 },
    handed: { sending: new Set(), closed: new Map(), refusals: [], repriced: new Set() },
    examined: new Set(),
    resume: Effect.suspend(() => resume(stateOf(lane))),
    isRunning: false,
    isAskedAgain: false
  })

  const stateOf = (lane: Lane): State => {
    const state = workers.get(laneKey(lane)) ?? fresh(lane)
    workers.set(laneKey(lane), state)
    return state
  }

  const resume = (state: State): Effect.Effect<void> =>
    Effect.suspend(() => {
      state.isAskedAgain = true
      if (state.isRunning) return Effect.sync(() => inFlight.wake(state.lane))
      state.isRunning = true
      return Effect.asVoid(Effect.forkIn(loop(state), scope))
    })

  const wake = (lane: Lane, hasUnopened = false): Effect.Effect<void> =>
    Effect.suspend(() => {
      const state = stateOf(lane)
      if (hasUnopened) {
        state.opensAt = 0
        state.mayReprice = true
      }
      state.queue = { ...state.queue, hasMore: true }
      return resume(state)
    })

  return {
    wake,
    accepted: (lane, requests) =>
      Effect.suspend(() => {
        const state = stateOf(lane)
        if (state.epoch === null) for (const { requestId } of requests) state.fresh.add(requestId)
        return wake(
          lane,
          requests.some(({ unopened }) => unopened > 0)
        )
      }),
    delayOf: (lane, requestId) => {
      const state = workers.get(laneKey(lane))
      return state === undefined ? null : delayOf(state, requestId)
    },
    unknown: (lane) => {
      const state = workers.get(laneKey(lane))
      const access = state?.queue.ops.find(({ context }) => context !== null)?.context?.access
      return state === undefined || access === undefined || Reconcile.maySign(state.reconcile)
        ? null
        : { nonces: [...state.reconcile.unknown], access }
    },
    mined: (record, isForGood) =>
      Effect.suspend(() => {
        const state = workers.get(laneKey(record))
        const isAwaited = state !== undefined && !Reconcile.maySign(state.reconcile)
        if (isAwaited) state.pauses = Pauses.end(state.pauses, [whole])
        if (!isForGood) return isAwaited ? wake(record) : Effect.void
        if (state === undefined) return wake(record)
        const opIds = record.ops.flatMap((op) => (op as Partial<Pick<Bundle.Held, "opId">>).opId ?? [])
        state.mined.push({ opIds, isReverted: record.mined?.success === false })
        // A wallet of an unopened element may have a free nonce key again.
        const waiting = requestKeys(state)
        state.pauses = Pauses.end(state.pauses, waiting)
        return wake(record, waiting.length > 0)
      })
  }
}
