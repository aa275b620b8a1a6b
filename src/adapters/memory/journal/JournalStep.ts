import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { JournalError } from "../../../application/ports/journal/Journal.js"
import * as Uint from "../../../domain/primitives/Uint.js"

export const fits = (bits: number, values: ReadonlyArray<bigint>): boolean =>
  values.every((value) => value >= 0n && value <= Uint.max(bits))

export const outOfRange = "an integer does not fit its field"

/** Why the call contradicts what the journal holds, or the answer. Nothing has changed when it is a `Refusal`. */
export type Answer<A> = Refusal | { readonly value: A }
export interface Refusal {
  readonly refused: string
}
export const refuse = (refused: string): Refusal => ({ refused })
export const answer = <A>(value: A): Answer<A> => ({ value })
export const done: Answer<void> = { value: undefined }

/** Each method runs without interruption by others: one synchronous step at one time of the clock. */
export const step = <A>(run: (now: number) => Answer<A>): Effect.Effect<A, JournalError> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.suspend(() => {
      const result = run(now)
      return "refused" in result
        ? Effect.fail(new JournalError({ message: result.refused }))
        : Effect.succeed(result.value)
    })
  )
