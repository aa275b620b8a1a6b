import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import * as Reasons from "../request/Reasons.js"
import * as Backoff from "../runtime/Backoff.js"
import * as HeldNonces from "./HeldNonces.js"
import type { NodeFault } from "./NodeFault.js"
import * as Elements from "./SubmissionElements.js"
import type { Action, Event, Failures, Outcomes, Phase, State, Step, Terms } from "./SubmissionPhases.js"

/**
 * The state machine of a request's elements, from the first look at the chain to the last outcome: what is done next, and
 * what follows from what came of it. Pure, so that every pair of a phase and an event is tested; `Submission` executes
 * the actions.
 */

/** A node that answers with errors is asked so often before a request that was accepted is given up. */
export const maxRefusals = 3
/** What a request waits before it asks a failing node again. */
export const backoff: Backoff.Backoff = { firstMillis: 100, longestMillis: 2_000 }

/** An element whose transactions, in which it was alone, were mined without it this often is given up. */
export const maxTries = 3
const notIncluded = elementFailure("execution_failed", Reasons.text("notIncluded", { tries: maxTries }))
const nonceBlocked = elementFailure("execution_failed", Reasons.text("nonceBlocked"))
const overdue = elementFailure("execution_failed", Reasons.text("timeLimit"))
const walletBusy = elementFailure("wallet_busy")

const none: Failures = new Map()
const asking: Phase = { _tag: "asking" }
const over: Phase = { _tag: "over" }
const releasing: Phase = { _tag: "pausing", millis: 0, releases: true }

type Changes = Iterable<readonly [number, Elements.Change]>

const changed = (state: State, changes: Changes): State => {
  const elements = new Map(state.elements)
  for (const [index, change] of changes) {
    const element = elements.get(index)
    if (element !== undefined) elements.set(index, Elements.step(element, change))
  }
  return { ...state, elements }
}

const failed = (state: State, failures: Failures): State =>
  failures.size === 0
    ? state
    : changed(
        state,
        [...failures].map(([index, failure]) => [index, { _tag: "fail", failure }])
      )

const alike = (elements: ReadonlyArray<number>, failure: ElementFailure): Failures =>
  new Map(elements.map((index) => [index, failure]))

const indexesOf = ({ elements }: State, is: (element: Elements.Element) => boolean): ReadonlyArray<number> =>
  [...elements].flatMap(([index, element]) => (is(element) ? [index] : []))

const waitingOf = (state: State) => indexesOf(state, Elements.isWaiting)

/** Why elements come to nothing, in the order of the request. */
export const failuresOf = ({ elements }: State): Failures =>
  new Map(
    [...elements].flatMap(([index, element]) =>
      element._tag === "failed" ? [[index, element.failure] as const] : []
    )
  )

export const landedOf = ({ elements }: State): Outcomes["landed"] =>
  new Map(
    [...elements].flatMap(([index, element]) =>
      element._tag === "landed" ? [[index, element.outcome] as const] : []
    )
  )

const heldOf = ({ elements }: State): HeldNonces.HeldNonces =>
  new Map(
    [...elements].flatMap(([index, element]) =>
      element._tag === "held" ? [[index, element.nonce] as const] : []
    )
  )

const unnotedOf = ({ elements }: State): Failures =>
  new Map(
    [...elements].flatMap(([index, element]) =>
      element._tag === "failed" && !element.isNoted ? [[index, element.failure] as const] : []
    )
  )

/** What depends on elements that have come to nothing comes to nothing too. */
const failDependants = (state: State): State => {
  const { dependencies } = state.terms
  if (!Dependencies.any(dependencies)) return state
  const failures = new Map<number, ElementFailure>()
  for (const index of Dependencies.order(dependencies, waitingOf(state))) {
    const on = dependencies[index] ?? null
    const before = on === null ? undefined : state.elements.get(on)
    if (on === null || before === undefined) continue
    const isLost =
      failures.has(on) || before._tag === "failed" || (before._tag === "landed" && !before.outcome.success)
    if (isLost) failures.set(index, Elements.dependencyFailed(on))
  }
  return failed(state, failures)
}

/** Of elements that failed together, those that depend on another one of the failed name that one. */
const named = ({ elements, terms: { dependencies } }: State, failures: Failures): Failures => {
  const all = new Map(failures)
  for (const index of Dependencies.order(dependencies, failures.keys())) {
    const on = dependencies[index] ?? null
    if (on !== null && (all.has(on) || elements.get(on)?._tag === "failed"))
      all.set(index, Elements.dependencyFailed(on))
  }
  return all
}

const included = (state: State, landed: Outcomes["landed"], now: number): State => {
  if (landed.size === 0) return state
  const after = changed(
    state,
    [...landed].map(([index, outcome]) => [index, { _tag: "include", outcome }])
  )
  // What waited for the others has the time that they had.
  return state.terms.isApart ? { ...after, deadline: now + state.terms.patienceMillis } : after
}

const bumped = (counts: ReadonlyMap<number, number>, index: number) =>
  new Map(counts).set(index, (counts.get(index) ?? 0) + 1)

/** What is known once none of them may be on its way any more. */
const settled = (state: State, { landed, returned }: Outcomes, now: number): State => {
  let after = included(state, landed, now)
  for (const [index, carrier] of returned) {
    after = changed({ ...after, mayHold: true }, [[index, { _tag: "return" }]])
    // Its nonce was used elsewhere: nobody's op has to do with that.
    if (carrier === "foreign") continue
    after =
      carrier === "shared"
        ? { ...after, shared: bumped(after.shared, index) }
        : { ...after, tries: bumped(after.tries, index) }
    // The time until a revert is at settled depth is not the request's.
    after = { ...after, deadline: now + state.terms.patienceMillis }
    if ((after.tries.get(index) ?? 0) >= maxTries) after = failed(after, new Map([[index, notIncluded]]))
  }
  return after
}

/**
 * The node failed, and nothing is on its way: the same again after a pause, until the request's time is over. It ends
 * with all open elements given up at the latest.
 */
const endured = (state: State, fault: NodeFault, now: number): State => {
  const left = state.deadline - now
  const refusals = fault.unreachable ? 0 : state.node.refusals + 1
  const faults = state.node.faults + 1
  const after = { ...state, node: { fault, faults, refusals } }
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

const held = (state: State, nonces: HeldNonces.HeldNonces): State =>
  changed(
    state,
    waitingOf(state).map((index) => {
      const nonce = nonces.get(index)
      return [index, nonce === undefined ? { _tag: "free" } : { _tag: "hold", nonce }]
    })
  )

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
    changed(
      state,
      event.done.map((index) => [index, { _tag: "do" }])
    ),
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
  return yielded(result.fault === null ? { ...refused, phase: end } : endured(refused, result.fault, now))
}

const ofResumed = (state: State, event: Extract<Event, { readonly _tag: "resumed" }>, now: number): State => {
  const noted = changed(
    failed(state, event.failed),
    [...event.failed.keys()].map((index) => [index, { _tag: "note" }])
  )
  const after = held(settled(noted, event, now), event.held)
  const { cancelled } = event
  return {
    ...(cancelled === null
      ? after
      : changed(
          after,
          waitingOf(after).map((index) => [index, { _tag: "cancel", failure: cancelled }])
        )),
    phase: asking
  }
}

/** The state after an event; one that does not fit the phase changes nothing. */
const apply = (state: State, event: Event, now: number): State => {
  const { phase } = state
  if (event._tag === "noted")
    return changed(
      state,
      [...unnotedOf(state).keys()].map((index) => [index, { _tag: "note" }])
    )
  switch (phase._tag) {
    case "resuming":
      return event._tag === "resumed" ? ofResumed(state, event, now) : state
    case "asking": {
      if (event._tag === "nodeFailed") return endured(state, event.fault, now)
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
          return endured(state, event.fault, now)
        default:
          return state
      }
    case "offering":
      return ofOffered(state, phase, event)
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

/** What the journal said of the ops that were offered to it. */
const ofOffered = (
  state: State,
  { transfers }: Extract<Phase, { readonly _tag: "offering" }>,
  event: Event
): State => {
  switch (event._tag) {
    case "accepted": {
      const noted: Changes = [...unnotedOf(state).keys()].map((index) => [index, { _tag: "note" }])
      const accepted: Changes = transfers.flat().map((index) => [index, { _tag: "accept" }])
      return {
        ...changed(state, [...noted, ...accepted]),
        isAccepted: true,
        phase: { _tag: "sending", transfers, place: 0, outdated: none }
      }
    }
    case "occupied":
      return { ...state, phase: { _tag: "waiting", orFail: alike([event.index], walletBusy) } }
    case "deploymentPending": {
      const pending = event.index === null ? [] : [event.index]
      return { ...failed(state, alike(pending, elementFailure("deployment_pending"))), phase: releasing }
    }
    case "cancelled": {
      const { failure } = event
      const waiting = waitingOf(state)
      return {
        ...changed(
          state,
          waiting.map((index) => [index, { _tag: "cancel", failure }])
        ),
        phase: releasing
      }
    }
    default:
      return state
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
      return { _tag: "follow", elements: phase.transfers[phase.place] ?? [] }
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
  { isAccepted, now }: { readonly isAccepted: boolean; readonly now: number }
): Step =>
  at(
    {
      terms,
      elements: new Map(elements.map((index) => [index, Elements.open])),
      phase: isAccepted ? { _tag: "resuming" } : asking,
      isAccepted,
      deadline: now + terms.patienceMillis,
      mayHold: isAccepted,
      tries: new Map(),
      shared: new Map(),
      node: { fault: null, faults: 0, refusals: 0 }
    },
    now
  )
