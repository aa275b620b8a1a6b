/**
 * Judges a component of ops by its trials. It is rejected only for its own failure, on the newest block that its lane has seen.
 * Pure.
 */

/**
 * Standing of a component.
 *
 * - `suspected`: it failed together with others; it is simulated separately with the next bundle
 * - `leading`: it passed separately; it goes first in the next bundle, unless others must precede it
 * - `apart`: it fails with others and passes separately, or was in a reverted transaction; it gets a transaction for itself
 */
export type Standing = "clean" | "suspected" | "leading" | "apart"

export interface State {
  readonly standing: Standing
  /** Mined transactions that carried it but do not show it. */
  readonly lacked: number
}

export type Event =
  /** It would fail, although the chain has not changed since its preparation. */
  | {
      readonly _tag: "refused"
      readonly isAlone: boolean
      /** The trial's block is the newest seen. */
      readonly isNewest: boolean
    }
  /** Simulated separately. */
  | { readonly _tag: "passed" }
  /** The transaction would cost the service's EOA more than the ops are charged at their prices. */
  | { readonly _tag: "unpaid"; readonly isAlone: boolean }
  | { readonly _tag: "recorded" }
  /** A transaction that carried it was mined without it. */
  | { readonly _tag: "lacked" }

export interface Step {
  readonly state: State
  readonly isRejected: boolean
}

/** A component missing from this many mined transactions is rejected. */
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

/** Maximum components of the next bundle after a bundle failed without blaming an op. */
export const halve = (components: number): number => Math.max(Math.floor(components / 2), 1)
