import { elementFailure } from "../../request/Elements.js"
import * as Reasons from "../../request/Reasons.js"
import * as Backoff from "../../runtime/Backoff.js"
import type { NodeFault } from "../NodeFault.js"
import * as HeldNonces from "./HeldNonces.js"
import * as SubmissionOffer from "./SubmissionOffer.js"
import { none, releasing, walletBusy } from "./SubmissionOffer.js"
import type { Action, Event, Outcomes, Phase, State, Step, Terms } from "./SubmissionPhases.js"
import {
  alike,
  cancelled,
  changed,
  failDependants,
  failed,
  failuresOf,
  held,
  heldOf,
  included,
  isUnsigned,
  named,
  noted,
  settled,
  unnotedOf,
  untouched,
  waitingOf
} from "./SubmissionProgress.js"

/**
 * The state machine of a request's elements, from the first look at the chain to the last outcome: what is done next, and
 * what follows from what came of it. Pure, so that every pair of a phase and an event is tested; `Submission` executes
 * the actions.
 */

/** A node that answers with errors is asked so often before a request that was accepted is given up. */
export const maxRefusals = 3
/** What a request waits before it asks a failing node again. */
export const backoff: Backoff.Backoff = { firstMillis: 100, longestMillis: 2_000 }

const nonceBlocked = elementFailure("execution_failed", Reasons.text("nonceBlocked"))
const overdue = elementFailure("execution_failed", Reasons.text("timeLimit"))

const asking: Phase = { _tag: "asking" }
const over: Phase = { _tag: "over" }

/**
 * Until when a failing node is asked again. The time for which a process cannot reach a node is not the time of an accepted
 * request of which nothing was signed, whichever process works on it: that expires, whatever delays it.
 */
const deadlineAt = (state: State, { unreachable }: NodeFault, now: number): number =>
  unreachable && state.isAccepted && isUnsigned(state)
    ? Math.max(state.deadline, Math.min(now + state.terms.patienceMillis, state.outlasts))
    : state.deadline

/**
 * The node failed, and nothing is on its way: the same again after a pause, until the request's time is over. It ends
 * with all open elements given up at the latest.
 */
const retried = (state: State, fault: NodeFault, now: number): State => {
  const deadline = deadlineAt(state, fault, now)
  const left = deadline - now
  const refusals = fault.unreachable ? 0 : state.node.refusals + 1
  const faults = state.node.faults + 1
  const after = { ...state, deadline, node: { fault, faults, refusals } }
  return refusals >= maxRefusals || left <= 0
    ? { ...failed(after, alike(waitingOf(after), fault.failure)), phase: asking }
    : {
        ...after,
        phase: {
          _tag: "pausing",
          millis: Math.min(Backoff.pauseMillis(backoff, faults), left),
          releases: true
        }
      }
}

/** What is to be prepared now: elements that wait for one at another bundler are not. */
const preparing = (state: State): State => {
  const waiting = new Set(waitingOf(state))
  if (waiting.size === 0) return { ...state, phase: asking }
  const { dependencies, isApart } = state.terms
  const elements = [...waiting].filter((index) => !isApart || !waiting.has(dependencies[index] ?? -1))
  return { ...state, phase: { _tag: "preparing", elements } }
}

const ofPrepared = (state: State, event: Extract<Event, { readonly _tag: "prepared" }>): State => {
  const marked = failed(
    changed(state, [
      ...event.done.map((index) => [index, { _tag: "do" }] as const),
      ...[...event.scheduled].map(([index, until]) => [index, { _tag: "schedule", until }] as const)
    ]),
    event.failed
  )
  const ready = event.transfers.flat()
  if (ready.length === 0) return { ...marked, phase: asking }
  const { behind, moved } = HeldNonces.displaced(ready, heldOf(marked))
  if (moved.length === 0) {
    const transfers = event.transfers.map((ops) => ops.map(({ index }) => index))
    return { ...marked, phase: { _tag: "offering", transfers } }
  }
  const blocked = behind.map(({ index }) => index)
  // Where none is behind, the chain has moved on since it was asked.
  const phase: Phase =
    blocked.length === 0 ? { _tag: "pausing", millis: backoff.firstMillis, releases: true } : releasing
  return { ...failed(marked, alike(blocked, nonceBlocked)), phase }
}

const ofFollowed = (
  state: State,
  { outdated, place, result, transfers }: Extract<Phase, { readonly _tag: "following" }>,
  outcomes: Outcomes,
  now: number
): State => {
  const bundle = transfers[place] ?? []
  const seen = settled(state, outcomes, now)
  // What is neither landed nor failed goes again.
  const after = changed(
    seen,
    bundle.map((index) => [index, { _tag: "return" }])
  )
  const rest = transfers.slice(place + 1).flat()
  const end: Phase = outdated.size > 0 ? { _tag: "waiting", orFail: outdated } : releasing
  if (bundle.every((index) => after.elements.get(index)?._tag === "landed")) {
    const node: State["node"] = { fault: null, faults: 0, refusals: 0 }
    return rest.length > 0
      ? { ...after, node, phase: { _tag: "sending", transfers, place: place + 1, outdated } }
      : { ...after, node, phase: end }
  }
  const yielded = (next: State): State =>
    rest.length === 0 ? next : { ...next, phase: { _tag: "yielding", elements: rest, next: next.phase } }
  const left = changed(
    after,
    rest.map((index) => [index, { _tag: "return" }])
  )
  const refused = result.forAll === null ? left : failed(left, alike(rest, result.forAll))
  return yielded(result.fault === null ? { ...refused, phase: end } : retried(refused, result.fault, now))
}

const ofResumed = (state: State, event: Extract<Event, { readonly _tag: "resumed" }>, now: number): State => {
  const known = noted(failed(state, event.failed), event.failed)
  const after = held(settled(known, event, now), event.held)
  return { ...(event.cancelled === null ? after : cancelled(after, event.cancelled)), phase: asking }
}

/** The state after an event; one that does not fit the phase changes nothing. */
const apply = (state: State, event: Event, now: number): State => {
  const { phase } = state
  if (event._tag === "noted") return noted(state, unnotedOf(state))
  switch (phase._tag) {
    case "resuming":
      return event._tag === "resumed" ? ofResumed(state, event, now) : state
    case "asking": {
      if (event._tag === "nodeFailed") return retried(state, event.fault, now)
      if (event._tag !== "asked") return state
      const after = held(included(state, event.landed, now), event.held)
      return event.isUndecided
        ? { ...after, phase: { _tag: "pausing", millis: backoff.longestMillis, releases: false } }
        : preparing(failDependants(after))
    }
    case "preparing":
      switch (event._tag) {
        case "prepared":
          return ofPrepared(state, event)
        case "busy":
          return { ...state, phase: { _tag: "waiting", orFail: alike(event.elements, walletBusy) } }
        case "refused":
          return { ...failed(state, alike(phase.elements, event.failure)), phase: releasing }
        case "nodeFailed":
          return retried(state, event.fault, now)
        default:
          return state
      }
    case "offering":
      return SubmissionOffer.after(state, phase, event)
    case "sending": {
      if (event._tag !== "sent") return state
      const { fault, forAll } = event
      const outdated = new Map([...phase.outdated, ...event.outdated])
      const after = failed(state, named(state, event.failed))
      return { ...after, phase: { ...phase, _tag: "following", outdated, result: { fault, forAll } } }
    }
    case "following":
      return event._tag === "followed" ? ofFollowed(state, phase, event, now) : state
    case "yielding":
      return event._tag === "yielded" ? { ...state, phase: phase.next } : state
    case "waiting":
      if (event._tag === "waitedInVain") return { ...failed(state, phase.orFail), phase: asking }
      return event._tag === "woken" ? { ...state, phase: asking } : state
    case "pausing":
      return event._tag === "paused" ? { ...state, phase: asking } : state
    case "over":
      return event._tag === "foundLanded" ? included(state, event.landed, now) : state
  }
}

/** Goes on from where nothing is under way: to the end, or to what is left. */
const advanced = (state: State, now: number): State => {
  const isIdle = state.phase._tag === "asking" || state.phase._tag === "waiting" || isReleasing(state.phase)
  if (!isIdle) return state
  const after = failDependants(state)
  const waiting = waitingOf(after)
  if (waiting.length === 0) return { ...after, phase: over }
  if (after.phase._tag !== "asking") return after
  if (after.isAccepted && now >= after.deadline)
    return { ...failed(after, alike(waiting, after.node.fault?.failure ?? overdue)), phase: over }
  return after.mayHold ? after : preparing(after)
}

const isReleasing = (phase: Phase): boolean => phase._tag === "pausing" && phase.millis === 0

const actionOf = (state: State): Action => {
  const { phase } = state
  const failures = state.isAccepted && phase._tag !== "offering" ? unnotedOf(state) : none
  if (failures.size > 0) return { _tag: "note", failed: failures }
  switch (phase._tag) {
    case "resuming":
      return { _tag: "resume" }
    case "asking":
      return { _tag: "ask", elements: waitingOf(state) }
    case "preparing":
      return { _tag: "prepare", elements: phase.elements, held: heldOf(state) }
    case "offering":
      return { _tag: "accept", failed: failuresOf(state) }
    case "sending":
      return { _tag: "send", place: phase.place }
    case "following":
      // What was refused may land as long as it lasts: nothing else waits for that.
      return {
        _tag: "follow",
        elements: (phase.transfers[phase.place] ?? []).filter(
          (index) => state.elements.get(index)?._tag !== "failed"
        )
      }
    case "yielding":
      return { _tag: "yield", elements: phase.elements }
    case "waiting":
      return { _tag: "wait", deadline: state.deadline }
    case "pausing":
      return { _tag: "pause", millis: phase.millis, releases: phase.releases }
    case "over":
      return { _tag: "end" }
  }
}

const at = (state: State, now: number): Step => {
  const after = advanced(state, now)
  return { state: after, action: actionOf(after) }
}

/** What becomes of the request's elements at an event, and what is to be done. */
export const step = (state: State, event: Event, now: number): Step => at(apply(state, event, now), now)

/** A request's elements, none of which is on the chain as far as is known. */
export const begin = (
  terms: Terms,
  elements: ReadonlyArray<number>,
  {
    isAccepted,
    isResumed,
    now
  }: { readonly isAccepted: boolean; readonly isResumed: boolean; readonly now: number }
): Step =>
  at(
    {
      terms,
      elements: untouched(elements),
      phase: isResumed ? { _tag: "resuming" } : asking,
      isAccepted,
      deadline: now + terms.patienceMillis,
      outlasts: now + terms.expiryMillis + terms.patienceMillis,
      mayHold: isResumed,
      tries: new Map(),
      shared: new Map(),
      usedNonces: 0,
      node: { fault: null, faults: 0, refusals: 0 }
    },
    now
  )
