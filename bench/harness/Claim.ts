import type { Context } from "./Context.js"

/** One line of a claim's table. Figures are texts with their units. */
export interface Row {
  readonly what: string
  readonly castellan: string
  /** Who it is measured against, and what that came to. */
  readonly against: string
  /** castellan's figure in relation to the other one. */
  readonly ratio: string
  readonly demand: string
  /** Null: no demand. */
  readonly met: boolean | null
}

export interface Result {
  readonly rows: ReadonlyArray<Row>
  /** Sentences below the table: what was run, and how it was counted. */
  readonly notes: ReadonlyArray<string>
  /** All samples, for the file of raw results. */
  readonly raw: unknown
}

/**
 * One claim of docs/performance.md. `run` fails when a result is wrong, never because a figure is missed.
 */
export interface Claim {
  readonly name: string
  readonly title: string
  /** Longest that a full run may take. */
  readonly boundSeconds: number
  readonly run: (context: Context) => Promise<Result>
}

/** Fails the claim: a result is not what it must be. */
export const ensure: (holds: boolean, otherwise: string) => asserts holds = (holds, otherwise) => {
  if (!holds) throw new Error(`wrong result: ${otherwise}`)
}
