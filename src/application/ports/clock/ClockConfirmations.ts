import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"

export class ClockConfirmationsError extends Data.TaggedError("ClockConfirmationsError")<{
  readonly message: string
}> {}

/** An operator's word that the clock is right, whatever a chain says. */
export interface Confirmation {
  /** Later ones have higher numbers. */
  readonly number: bigint
  /** What the clock said then, Unix milliseconds. */
  readonly at: number
}

/** The operator's words about the clock of all services of the database. */
export class ClockConfirmations extends Context.Service<
  ClockConfirmations,
  {
    readonly confirm: Effect.Effect<Confirmation, ClockConfirmationsError>
    /** Null: none. */
    readonly latest: Effect.Effect<Confirmation | null, ClockConfirmationsError>
  }
>()("castellan/ClockConfirmations") {}
