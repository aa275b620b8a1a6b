import type { Context } from "./Context.js"

/** A row of a claim's table. Figures are formatted with units. */
export interface Row {
  readonly what: string
  readonly castellan: string
  /** The contender and its figure. */
  readonly against: string
  /** castellan's figure relative to the contender's. */
  readonly ratio: string
  readonly demand: string
  /** Null without a demand. */
  readonly met: boolean | null
}

export interface Result {
  readonly rows: ReadonlyArray<Row>
  /** Sentences below the table about the run and its counting. */
  readonly notes: ReadonlyArray<string>
  /** All samples, for the file of raw results. */
  readonly raw: unknown
}

/** A claim of docs/performance.md. `run` fails on a wrong result, never on a missed figure. */
export interface Claim {
  readonly name: string
  readonly title: string
  /** Time limit of a full run. */
  readonly boundSeconds: number
  readonly run: (context: Context) => Promise<Result>
}

/** Fails the claim on a wrong result. */
export const ensure: (holds: boolean, otherwise: string) => asserts holds = (holds, otherwise) => {
  if (!holds) throw new Error(`wrong result: ${otherwise}`)
}
