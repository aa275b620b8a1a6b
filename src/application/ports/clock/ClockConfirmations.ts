import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"

export class ClockConfirmationsError extends Data.TaggedError("ClockConfirmationsError")<{
  readonly message: string
}> {}

/** An operator's statement that the clock is right, whatever a chain says. */
export interface Confirmation {
  /** Later ones have higher numbers. */
  readonly number: bigint
  /** The clock's time then, Unix milliseconds. */
  readonly at: number
}

/** Clock confirmations for all services of the database. */
export class ClockConfirmations extends Context.Service<
  ClockConfirmations,
  {
    readonly confirm: Effect.Effect<Confirmation, ClockConfirmationsError>
    /** Null: none. */
    readonly latest: Effect.Effect<Confirmation | null, ClockConfirmationsError>
  }
>()("castellan/ClockConfirmations") {}
