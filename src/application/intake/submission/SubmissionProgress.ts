import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import { dependencyFailed, type ElementFailure, elementFailure } from "../../request/Elements.js"
import * as Reasons from "../../request/Reasons.js"
import type * as HeldNonces from "./HeldNonces.js"
import * as Elements from "./SubmissionElements.js"
import type { Failures, Outcomes, State } from "./SubmissionPhases.js"

/**
 * The elements of a request taken together: what is known of them, and how outcomes and failures change that, whatever
 * the phase of the submission.
 */

/** An element whose transactions, in which it was alone, were mined without it this often is given up. */
export const maxTries = 3
const notIncluded = elementFailure("execution_failed", Reasons.text("notIncluded", { tries: maxTries }))

export type Changes = Iterable<readonly [number, Elements.Change]>

/** Elements none of which is on the chain as far as is known. */
export const untouched = (elements: ReadonlyArray<number>): State["elements"] =>
  new Map(elements.map((index) => [index, Elements.open]))

export const changed = (state: State, changes: Changes): State => {
  const elements = new Map(state.elements)
  for (const [index, change] of changes) {
    const element = elements.get(index)
    if (element !== undefined) elements.set(index, Elements.step(element, change))
  }
  return { ...state, elements }
}

export const failed = (state: State, failures: Failures): State =>
  failures.size === 0
    ? state
    : changed(
        state,
        [...failures].map(([index, failure]) => [index, { _tag: "fail", failure }])
      )

/** What is not held to a nonce is given up. */
export const cancelled = (state: State, failure: ElementFailure): State =>
  changed(
    state,
    waitingOf(state).map((index) => [index, { _tag: "cancel", failure }])
  )

/** The journal knows of these failures. */
export const noted = (state: State, failures: Failures): State =>
  changed(
    state,
    [...failures.keys()].map((index) => [index, { _tag: "note" }])
  )

/** By element, the same failure. */
export const alike = (elements: ReadonlyArray<number>, failure: ElementFailure): Failures =>
  new Map(elements.map((index) => [index, failure]))

const indexesOf = ({ elements }: State, is: (element: Elements.Element) => boolean): ReadonlyArray<number> =>
  [...elements].flatMap(([index, element]) => (is(element) ? [index] : []))

export const waitingOf = (state: State) => indexesOf(state, Elements.isWaiting)

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

/** What waits for its time: until when, Unix seconds by the chain's clock. */
export const scheduledOf = ({ elements }: State): ReadonlyMap<number, number> =>
  new Map(
    [...elements].flatMap(([index, element]) =>
      element._tag === "scheduled" ? [[index, element.until] as const] : []
    )
  )

export const heldOf = ({ elements }: State): HeldNonces.HeldNonces =>
  new Map(
    [...elements].flatMap(([index, element]) =>
      element._tag === "held" ? [[index, element.nonce] as const] : []
    )
  )

export const unnotedOf = ({ elements }: State): Failures =>
  new Map(
    [...elements].flatMap(([index, element]) =>
      element._tag === "failed" && !element.isNoted ? [[index, element.failure] as const] : []
    )
  )

/** What depends on elements that have come to nothing comes to nothing too. */
export const failDependants = (state: State): State => {
  const { dependencies } = state.terms
  if (!Dependencies.any(dependencies)) return state
  const failures = new Map<number, ElementFailure>()
  const undone = indexesOf(state, (element) => Elements.isWaiting(element) || element._tag === "scheduled")
  for (const index of Dependencies.order(dependencies, undone)) {
    const on = dependencies[index] ?? null
    const before = on === null ? undefined : state.elements.get(on)
    if (on === null || before === undefined) continue
    const isLost =
      failures.has(on) || before._tag === "failed" || (before._tag === "landed" && !before.outcome.success)
    if (isLost) failures.set(index, dependencyFailed(on))
  }
  return failed(state, failures)
}

/** Of elements that failed together, those that depend on another one of the failed name that one. */
export const named = ({ elements, terms: { dependencies } }: State, failures: Failures): Failures => {
  const all = new Map(failures)
  for (const index of Dependencies.order(dependencies, failures.keys())) {
    const on = dependencies[index] ?? null
    if (on !== null && (all.has(on) || elements.get(on)?._tag === "failed"))
      all.set(index, dependencyFailed(on))
  }
  return all
}

/** What is left of the request has all its time again. */
export const renewed = (state: State, now: number): State => ({
  ...state,
  deadline: now + state.terms.expiryMillis + state.terms.patienceMillis
})

export const included = (state: State, landed: Outcomes["landed"], now: number): State => {
  if (landed.size === 0) return state
  const after = changed(
    state,
    [...landed].map(([index, outcome]) => [index, { _tag: "include", outcome }])
  )
  return renewed(after, now)
}

const bumped = (counts: ReadonlyMap<number, number>, index: number) =>
  new Map(counts).set(index, (counts.get(index) ?? 0) + 1)

/** What is known once none of them may be on its way any more. */
export const settled = (state: State, { landed, returned }: Outcomes, now: number): State => {
  let after = included(state, landed, now)
  for (const [index, carrier] of returned) {
    after = changed({ ...after, mayHold: true }, [[index, { _tag: "return" }]])
    // Its nonce was used elsewhere: nobody's op has to do with that.
    if (carrier === "external") continue
    after =
      carrier === "shared"
        ? { ...after, shared: bumped(after.shared, index) }
        : { ...after, tries: bumped(after.tries, index) }
    // The time until a revert is at settled depth is not the request's.
    after = renewed(after, now)
    if ((after.tries.get(index) ?? 0) >= maxTries) after = failed(after, new Map([[index, notIncluded]]))
  }
  return after
}

export const held = (state: State, nonces: HeldNonces.HeldNonces): State =>
  changed(
    state,
    waitingOf(state).map((index) => {
      const nonce = nonces.get(index)
      return [index, nonce === undefined ? { _tag: "free" } : { _tag: "hold", nonce }]
    })
  )
