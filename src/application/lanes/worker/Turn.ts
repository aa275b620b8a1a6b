import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { elementFailure } from "../../failures/Elements.js"
import * as Holding from "../../ports/journal/Holding.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { OpId } from "../../ports/journal/Records.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import * as InFlights from "../InFlight.js"
import { expire } from "./Expiry.js"
import * as HandOver from "./HandOver.js"
import { type Next, pause, type State, type Work, whole } from "./LaneState.js"
import * as Open from "./prepare/Open.js"
import * as Reprice from "./Reprice.js"
import * as Unknown from "./recovery/Unknown.js"
import * as Bundle from "./rules/Bundle.js"
import * as Choose from "./rules/Choose.js"
import * as Context from "./rules/Context.js"
import * as Pauses from "./rules/Pauses.js"
import * as Queue from "./rules/Queue.js"
import * as Reconcile from "./rules/Reconcile.js"
import type * as Rejection from "./rules/Rejection.js"
import { boundOf, sendBundle, sendDirect } from "./Send.js"
import { fail, isStale, lookUp, noteLacked, prepareAgain, renumber, sign } from "./Upkeep.js"

/**
 * One turn of a lane's worker.
 *
 * 1. It holds the lane by its claim; writes of another process to the lane fail.
 * 2. It reads the oldest ready ops of the journal, at most two bundles.
 * 3. It reprices waiting transactions on request, and opens elements of accepted requests of accounts with less than a bundle
 *    ready.
 * 4. It chooses ops that go together, and prepares stale ops again.
 * 5. It signs the ops, and simulates the transaction on the latest block.
 * 6. It signs the transaction, records it, and gives it to the monitor, which follows it to its end.
 *
 * Gotchas: an obstacle never fails an op; the op pauses. An op fails only by its own execution, or by its signer's refusal.
 */

/** Recheck interval while `maxInFlight` transactions are in flight, milliseconds. */
const recheckMillis = 2_000

/** Takes over the lane: an earlier owner's work is in the journal. */
const takeOver = (work: Work) =>
  Effect.gen(function* () {
    const { state } = work
    const { lane } = state
    const epoch = work.claims.holding(lane)?.epoch ?? null
    if (epoch === state.epoch && !state.isDoubtful) return
    yield* work.watch(lane)
    if (state.epoch !== null) state.fresh.clear()
    if (epoch !== state.epoch)
      state.claimed = { at: yield* Clock.currentTimeMillis, since: yield* MonotonicTime.millis }
    state.epoch = epoch
    state.isDoubtful = false
    state.reconcile = Reconcile.step(state.reconcile, {
      _tag: "resumed",
      provenAt: yield* work.known.provenAt(lane),
      at: yield* Clock.currentTimeMillis,
      now: yield* MonotonicTime.millis
    })
    state.queue = Queue.empty
    state.sequences.clear()
    state.examined.clear()
    state.knownTo = null
    state.opensAt = 0
    state.mayReprice = true
  })

/** Accounts that share an EOA get equal parts of a read: no account waits behind another's backlog. */
const readyOf = ({ opJournal, state: { lane } }: Work) =>
  Effect.gen(function* () {
    const rows = yield* opJournal.ready(lane, Queue.rows)
    const hasMore = rows.length >= Queue.rows
    const isShared = hasMore && rows[0]?.key === "serviceEoa"
    return {
      hasMore,
      rows: isShared ? yield* opJournal.ready(lane, Queue.rows, { perAccount: Queue.bundle }) : rows
    }
  })

/** A transaction that reverted because an op had landed elsewhere says nothing about its other ops. */
const lackedOf = ({ mined, queue }: State): ReadonlyArray<Bundle.Held> => {
  const ready = new Set(queue.ops.map(({ opId }) => opId))
  const lacked = new Set(
    mined.flatMap(({ isReverted, opIds }) => {
      const own = opIds.filter((opId) => ready.has(opId))
      return isReverted && own.length < opIds.length ? [] : own
    })
  )
  return queue.ops.filter(({ opId }) => lacked.has(opId))
}

/** Settings that could not be read are retried when their ops' pauses end. */
const lacksContext = ({ pauses, queue }: State, now: number): boolean =>
  queue.ops.some(({ context, opId }) => context === null && !Pauses.isPaused(pauses, opId, now))

const refill = (work: Work, now: number) =>
  Effect.gen(function* () {
    const { monitor, preparing, state } = work
    const before = new Map(state.queue.ops.map((op) => [op.opId, op]))
    const { hasMore, rows } = yield* readyOf(work)
    /** By settings: why they cannot be read, and the ops that wait for them. */
    const away = new Map<string, { readonly why: string; readonly opIds: Array<OpId> }>()
    const ops = yield* Effect.forEach(rows, (op) => {
      const known = before.get(op.opId)
      if (known !== undefined && (known.context !== null || Pauses.isPaused(state.pauses, op.opId, now)))
        return Effect.succeed(known)
      const settings = op.contextDigest ?? op.requestId
      const silent = away.get(settings)
      silent?.opIds.push(op.opId)
      if (silent !== undefined) return Effect.succeed(Bundle.held(op, null))
      return Effect.matchEffect(preparing.contextOf(op, state.lane.chainId), {
        onFailure: ({ why }) => {
          away.set(settings, { why, opIds: [op.opId] })
          return Effect.succeed(Bundle.held(op, null))
        },
        // The account's waiting transactions use this node too: their own may be dead, and keep the lane full.
        onSuccess: (context) =>
          Effect.as(
            monitor.useNode(state.lane, context.access, context.connection.chain),
            Bundle.held(op, context)
          )
      })
    })
    for (const { opIds, why } of away.values()) yield* pause(state, opIds, why)
    state.queue = Queue.of(ops, hasMore)
    const lacked = lackedOf(state)
    state.mined.length = 0
    if (lacked.length > 0) yield* noteLacked(work, lacked)
  })

const keysInFlight = ({ inFlight, state: { lane } }: Work): ReadonlySet<string> => {
  const keys = new Set<string>()
  for (const { ops } of inFlight.signed(lane))
    for (const { entryPoint, key, wallet } of ops) keys.add(Choose.keyOf({ key, wallet, route: entryPoint }))
  return keys
}

const routeOf = ({ inFlight, state: { lane } }: Work) =>
  inFlight
    .signed(lane)
    .map(InFlights.routeOf)
    .find((route) => route !== null) ?? null

interface Obstacles {
  readonly isPaused: (op: Bundle.Held) => boolean
  readonly isHeld: (op: Bundle.Held, component: string) => boolean
  readonly standingOf: (component: string) => Rejection.Standing
  readonly now: number
}

/** Fails, renumbers or pauses ops that the choice rejects; without such ops, sends the chosen bundle. */
const carryOut = (
  work: Work,
  choice: Choose.Choice<Bundle.Held>,
  ordered: ReadonlyArray<Bundle.Held>,
  { isHeld, isPaused, now, standingOf }: Obstacles
): Effect.Effect<Next, JournalError> =>
  Effect.gen(function* () {
    const { state } = work
    const { lane } = state
    const waiting = (): Next => ({ at: Open.nextAt(state, now) })
    const { componentOf } = choice
    if (choice.tooLarge.length > 0) {
      const failure = elementFailure("too_large_to_bundle")
      yield* fail(work, new Map(choice.tooLarge.map(({ opId }) => [opId, failure])))
      return "again"
    }
    if (choice.renumbered.length > 0) {
      yield* renumber(work, choice.renumbered)
      return "again"
    }
    const isFree = (op: Bundle.Held) => !isHeld(op, componentOf(op))
    const [used, blocked] = [choice.used.filter(isFree), choice.blocked.filter(isFree)]
    if (used.length + blocked.length > 0) {
      const explained = yield* lookUp(work, [...used, ...blocked])
      const left = used.filter(
        (op) => !explained.has(op.opId) && (state.sequences.get(Choose.keyOf(op)) ?? 0n) > op.sequence
      )
      yield* pause(state, left, "its nonce is used")
      const waiting = blocked.filter((op) => state.queue.ops.includes(op) && !isPaused(op))
      yield* pause(state, waiting, "its signed bytes may land, behind an unused nonce")
      return "again"
    }
    const suspected = ordered.filter((op) => standingOf(componentOf(op)) === "suspected" && !isPaused(op))
    const [head] = choice.ops
    const context = (head ?? suspected[0])?.context ?? null
    if (context === null) return waiting()
    const trials = suspected.filter((op) => op.context === context)
    const tried = [...choice.ops, ...trials]
    const stale = yield* Effect.filter(tried, (op) => isStale(work, op))
    if (stale.length > 0) {
      yield* prepareAgain(work, stale)
      return "again"
    }
    if (context.kind === "direct") {
      if (head === undefined) return waiting()
      yield* work.exclusive(lane, sendDirect(work, head, context))
      return "again"
    }
    const signed = yield* sign(work, tried)
    const isMissing = new Set(tried.filter(({ opId }) => !signed.has(opId)).map(componentOf))
    // Choose again without the unsigned ops: later ops of their nonce keys must wait too.
    if (choice.ops.some((op) => isMissing.has(componentOf(op)))) return "again"
    const withSignatures = (ops: ReadonlyArray<Bundle.Held>) => ({
      ops,
      signed: ops.flatMap(({ opId }) => signed.get(opId) ?? [])
    })
    const suspects = [...Map.groupBy(trials, componentOf)].flatMap(([component, own]) =>
      isMissing.has(component) ? [] : [withSignatures(own)]
    )
    if (choice.ops.length === 0 && suspects.length === 0) return waiting()
    const bundle = sendBundle(work, context, withSignatures(choice.ops), suspects, componentOf)
    yield* work.exclusive(lane, bundle)
    return "again"
  })

const turn = (work: Work): Effect.Effect<Next, JournalError> =>
  Effect.gen(function* () {
    const { inFlight, state } = work
    const { lane } = state
    yield* takeOver(work)
    yield* HandOver.hear(work)
    const now = yield* MonotonicTime.millis
    if (Queue.isLow(state.queue) || lacksContext(state, now)) yield* refill(work, now)
    yield* Reprice.turn(work, now)
    yield* expire(work)
    const due = yield* Open.due(work, now)
    const waiting = (): Next => ({ at: Open.nextAt(state, now) })
    if (state.queue.ops.length === 0 && due === null) return waiting()
    if (Pauses.isPaused(state.pauses, whole, now)) return waiting()
    const all = Queue.inTurn(state.queue.ops, state.servedAt)
    const isRemote = ({ context }: Bundle.Held) => context !== null && Context.isRemote(context)
    if (yield* Open.open(work, due, now)) return "again"
    const remote = all.filter(isRemote)
    if (remote.length > 0 && (yield* HandOver.turn(work, remote, now))) return "again"
    const ordered = all.filter((op) => !isRemote(op))
    const [oldest] = ordered
    const isPaused = ({ opId }: Bundle.Held) => Pauses.isPaused(state.pauses, opId, now)
    const asked = ordered.find((op) => op.context !== null && !isPaused(op))?.context ?? due?.context ?? null
    const maySign = Reconcile.maySign(state.reconcile)
    if (asked !== null && !Context.isRemote(asked) && (state.knownTo === null || !maySign)) {
      const isKnown = yield* Unknown.compare(work, asked)
      const isRead = state.queue.ops.length === 0 && ordered.length > 0
      if (isRead || ((!isKnown || due !== null) && ordered.every(({ exposed }) => !exposed))) return "again"
    }
    if (oldest === undefined) return waiting()
    const profile = oldest.context?.connection.profile
    if (profile !== undefined && inFlight.count(lane) >= profile.maxInFlight)
      return { at: now + recheckMillis }
    const standingOf = (component: string) => state.standings.get(component)?.standing ?? "clean"
    const isHeld = (op: Bundle.Held, component: string): boolean =>
      op.context === null ||
      isPaused(op) ||
      state.signatures.isPending(op.opId) ||
      standingOf(component) === "suspected"
    const choice = Choose.choose(ordered, {
      route: routeOf(work),
      keysInFlight: keysInFlight(work),
      isCalling: inFlight.isCalling(lane),
      sequences: state.sequences,
      maySign: Reconcile.maySign(state.reconcile),
      isHeld,
      leads: (component) => standingOf(component) === "leading",
      isAlone: (component) => standingOf(component) === "apart",
      most: state.most,
      capacity: Bundle.capacity(oldest.context === null ? 0n : boundOf(state, oldest.context))
    })
    return yield* carryOut(work, choice, ordered, { isPaused, isHeld, standingOf, now })
  })

/** Writes of this turn fail if another process has had the lane since the turn began. */
export const ofOwner = (work: Work): Effect.Effect<Next, JournalError> => {
  const { claims, state } = work
  return Effect.flatMap(claims.take(state.lane), (isOwn) =>
    isOwn
      ? Effect.provideService(turn(work), Holding.begun, { holding: claims.holding(state.lane) })
      : Effect.succeed("leave")
  )
}
