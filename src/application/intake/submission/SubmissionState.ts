import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Delays from "../../request/Delays.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import * as Reasons from "../../request/Reasons.js"
import * as Backoff from "../../runtime/Backoff.js"
import * as HeldNonces from "./HeldNonces.js"
import * as SubmissionOffer from "./SubmissionOffer.js"
import { none, releasing, walletBusy } from "./SubmissionOffer.js"
import type { Action, Event, Failures, Outcomes, Phase, State, Step, Terms } from "./SubmissionPhases.js"
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

/** What accepted work waits before it is tried again whatever stood in its way. */
export const backoff: Backoff.Backoff = { firstMillis: 100, longestMillis: 30_000 }
/** What it waits for a block to become final, which tells by what a nonce was used. */
const undecidedMillis = 2_000

const nonceBlocked = elementFailure("execution_failed", Reasons.text("nonceBlocked"))
/** What was not done in time, and what stood in its way at last. */
const expired = ({ delayed: { by } }: State): ElementFailure =>
  elementFailure(
    "request_expired",
    by === null ? undefined : Reasons.text("restExpired", { problem: by.message })
  )

const asking: Phase = { _tag: "asking" }
const over: Phase = { _tag: "over" }

/** Nothing more is on its way, and something stands in the way that passes: the same again after a pause. */
const delayed = (state: State, by: ElementFailure, now: number): State => {
  const times = state.delayed.times + 1
  const millis = Math.max(Math.min(Backoff.pauseMillis(backoff, times), state.deadline - now), 1)
  return { ...state, delayed: { by, times }, phase: { _tag: "pausing", millis, releases: true } }
}

/** What is to be prepared now: elements that wait for one at another bundler are not. */
const preparing = (state: State): State => {
  const waiting = new Set(waitingOf(state))
  if (waiting.size === 0) return { ...state, phase: asking }
  const { dependencies, isApart } = state.terms
  const elements = [...waiting].filter((index) => !isApart || !waiting.has(dependencies[index] ?? -1))
  return { ...state, phase: { _tag: "preparing", elements } }
}

/** Of what could not be prepared, what fails; once the request is accepted, what only delays it does not. */
const refusedIn = (state: State, failures: Failures): ReturnType<typeof Delays.parted> => {
  if (!state.isAccepted) return { failed: failures, delay: null }
  const { dependencies } = state.terms
  const { delay, failed: final } = Delays.parted(failures)
  const lasting = new Map(final)
  for (const index of Dependencies.order(dependencies, failures.keys())) {
    const on = dependencies[index] ?? null
    // What waits for one that is delayed is delayed with it.
    if (on !== null && failures.has(on) && !lasting.has(on)) lasting.delete(index)
  }
  return { failed: lasting, delay }
}

const ofPrepared = (
  state: State,
  event: Extract<Event, { readonly _tag: "prepared" }>,
  now: number
): State => {
  const refused = refusedIn(state, event.failed)
  const marked = failed(
    changed(state, [
      ...event.done.map((index) => [index, { _tag: "do" }] as const),
      ...[...event.scheduled].map(([index, until]) => [index, { _tag: "schedule", until }] as const)
    ]),
    refused.failed
  )
  const ready = event.transfers.flat()
  if (ready.length === 0)
    return refused.delay === null ? { ...marked, phase: asking } : delayed(marked, refused.delay, now)
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
  const ended = (last: State): State => {
    const [first] = outdated.values()
    return first === undefined ? { ...last, phase: releasing } : delayed(last, first, now)
  }
  if (bundle.every((index) => after.elements.get(index)?._tag === "landed")) {
    return rest.length > 0
      ? { ...after, phase: { _tag: "sending", transfers, place: place + 1, outdated } }
      : ended(after)
  }
  const yielded = (next: State): State =>
    rest.length === 0 ? next : { ...next, phase: { _tag: "yielding", elements: rest, next: next.phase } }
  const left = changed(
    after,
    rest.map((index) => [index, { _tag: "return" }])
  )
  const refused = result.forAll === null ? left : failed(left, alike(rest, result.forAll))
  return yielded(result.delay === null ? ended(refused) : delayed(refused, result.delay, now))
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
      if (event._tag === "delayed") return delayed(state, event.by, now)
      if (event._tag !== "asked") return state
      const after = held(included(state, event.landed, now), event.held)
      return event.isUndecided
        ? { ...after, phase: { _tag: "pausing", millis: undecidedMillis, releases: false } }
        : preparing(failDependants(after))
    }
    case "preparing":
      switch (event._tag) {
        case "prepared":
          return ofPrepared(state, event, now)
        case "busy":
          return { ...state, phase: { _tag: "waiting", orFail: alike(event.elements, walletBusy) } }
        case "refused":
          return { ...failed(state, alike(phase.elements, event.failure)), phase: releasing }
        case "delayed":
          return delayed(state, event.by, now)
        default:
          return state
      }
    case "offering":
      return SubmissionOffer.after(state, phase, event, now)
    case "sending": {
      if (event._tag !== "sent") return state
      const { delay, forAll } = event
      const outdated = new Map([...phase.outdated, ...event.outdated])
      const after = failed(
        event.isSent ? { ...state, delayed: { by: null, times: 0 } } : state,
        named(state, event.failed)
      )
      return { ...after, phase: { ...phase, _tag: "following", outdated, result: { delay, forAll } } }
    }
    case "following":
      return event._tag === "followed" ? ofFollowed(state, phase, event, now) : state
    case "yielding":
      return event._tag === "yielded" ? { ...state, phase: phase.next } : state
    case "waiting":
      if (event._tag === "waitedInVain")
        return { ...(state.isAccepted ? state : failed(state, phase.orFail)), phase: asking }
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
    return { ...failed(after, alike(waiting, expired(after))), phase: over }
  return after.mayHold ? after : preparing(after)
}

const isReleasing = (phase: Phase): boolean => phase._tag === "pausing" && phase.millis === 0

const actionOf = (state: State, now: number): Action => {
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
      return {
        _tag: "wait",
        deadline: state.isAccepted ? Math.min(state.deadline, now + backoff.longestMillis) : state.deadline
      }
    case "pausing":
      return { _tag: "pause", millis: phase.millis, releases: phase.releases }
    case "over":
      return { _tag: "end" }
  }
}

const at = (state: State, now: number): Step => {
  const after = advanced(state, now)
  return { state: after, action: actionOf(after, now) }
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
      deadline: now + terms.patienceMillis + (isAccepted ? terms.expiryMillis : 0),
      mayHold: isResumed,
      tries: new Map(),
      shared: new Map(),
      usedNonces: 0,
      delayed: { by: null, times: 0 }
    },
    now
  )
