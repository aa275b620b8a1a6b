/**
 * What follows for a component of ops from what was tried with it: an op is rejected only for what it does alone, on the newest
 * block that its lane has seen. Pure.
 */

/** What speaks against a component. */
export type Standing =
  | { readonly _tag: "clean" }
  /** It failed in company: it is tried alone beside the next bundle. */
  | { readonly _tag: "suspected" }
  /** It passed alone: it is the first of the next bundle, where nothing stands before it. */
  | { readonly _tag: "leading" }
  /** It fails in company and passes alone, or was in a transaction that reverted: it has the next one for itself. */
  | { readonly _tag: "apart" }

export interface State {
  readonly standing: Standing
  /** Mined transactions that carried it and do not show it. */
  readonly lacked: number
}

export type Event =
  /** It would fail. `isDoubtful`: for what the chain has become since it was prepared, which nobody has looked up yet. */
  | {
      readonly _tag: "refused"
      readonly isAlone: boolean
      /** No newer block was seen than the one on which it was tried. */
      readonly isNewest: boolean
      readonly isDoubtful: boolean
    }
  | { readonly _tag: "passed"; readonly isAlone: boolean }
  /** The transaction would cost the service's EOA more than the ops are charged, at the prices that they name. */
  | { readonly _tag: "unpaid"; readonly isAlone: boolean }
  | { readonly _tag: "recorded" }
  /** A transaction that carried it was mined without it. */
  | { readonly _tag: "lacked" }

export type Verdict = "none" | "lookUp" | "reject"

export interface Step {
  readonly state: State
  readonly verdict: Verdict
}

/** A component that so many mined transactions lacked is rejected. */
export const mostLacked = 3

export const clean: State = { standing: { _tag: "clean" }, lacked: 0 }

const apart: Standing = { _tag: "apart" }
const suspected: Standing = { _tag: "suspected" }

const inCompany = (standing: Standing): Standing => {
  switch (standing._tag) {
    case "clean":
    case "suspected":
      return suspected
    case "leading":
    case "apart":
      return apart
  }
}

export const step = (state: State, event: Event): Step => {
  const { lacked, standing } = state
  const to = (next: Standing, verdict: Verdict = "none"): Step => ({
    state: { standing: next, lacked },
    verdict
  })
  switch (event._tag) {
    case "refused":
      if (event.isDoubtful) return to(standing, "lookUp")
      if (!event.isAlone) return to(inCompany(standing))
      return to(standing, event.isNewest ? "reject" : "none")
    case "passed":
      return to(event.isAlone && standing._tag === "suspected" ? { _tag: "leading" } : standing)
    case "unpaid":
      return event.isAlone ? to(standing, "reject") : to(inCompany(standing))
    case "recorded":
      return to(standing._tag === "apart" ? standing : clean.standing)
    case "lacked":
      return {
        state: { standing: apart, lacked: lacked + 1 },
        verdict: lacked + 1 >= mostLacked ? "reject" : "none"
      }
  }
}

/** How many components the next bundle has at most, after a bundle of so many failed and no op of it is to blame. */
export const halved = (components: number): number => Math.max(Math.floor(components / 2), 1)
