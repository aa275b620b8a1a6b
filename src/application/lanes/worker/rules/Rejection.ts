/**
 * What follows for a component of ops from what was tried with it: an op is rejected only for what it does alone, on the newest
 * block that its lane has seen. Pure.
 */

/**
 * What speaks against a component.
 *
 * - `suspected`: it failed in company; it is tried alone beside the next bundle
 * - `leading`: it passed alone; it is the first of the next bundle, where nothing stands before it
 * - `apart`: it fails in company and passes alone, or was in a transaction that reverted; it has the next one for itself
 */
export type Standing = "clean" | "suspected" | "leading" | "apart"

export interface State {
  readonly standing: Standing
  /** Mined transactions that carried it and do not show it. */
  readonly lacked: number
}

export type Event =
  /** It would fail, for nothing that the chain has become since it was prepared. */
  | {
      readonly _tag: "refused"
      readonly isAlone: boolean
      /** No newer block was seen than the one on which it was tried. */
      readonly isNewest: boolean
    }
  /** Alone. */
  | { readonly _tag: "passed" }
  /** The transaction would cost the service's EOA more than the ops are charged, at the prices that they name. */
  | { readonly _tag: "unpaid"; readonly isAlone: boolean }
  | { readonly _tag: "recorded" }
  /** A transaction that carried it was mined without it. */
  | { readonly _tag: "lacked" }

export interface Step {
  readonly state: State
  readonly isRejected: boolean
}

/** A component that so many mined transactions lacked is rejected. */
export const mostLacked = 3

export const clean: State = { standing: "clean", lacked: 0 }

const inCompany = (standing: Standing): Standing =>
  standing === "clean" || standing === "suspected" ? "suspected" : "apart"

export const step = ({ lacked, standing }: State, event: Event): Step => {
  const to = (next: Standing, isRejected = false): Step => ({ state: { standing: next, lacked }, isRejected })
  switch (event._tag) {
    case "refused":
      return event.isAlone ? to(standing, event.isNewest) : to(inCompany(standing))
    case "passed":
      return to(standing === "suspected" ? "leading" : standing)
    case "unpaid":
      return event.isAlone ? to(standing, true) : to(inCompany(standing))
    case "recorded":
      return to(standing === "apart" ? standing : "clean")
    case "lacked":
      return { state: { standing: "apart", lacked: lacked + 1 }, isRejected: lacked + 1 >= mostLacked }
  }
}

/** How many components the next bundle has at most, after a bundle of so many failed and no op of it is to blame. */
export const halved = (components: number): number => Math.max(Math.floor(components / 2), 1)
