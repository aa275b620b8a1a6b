import * as Cause from "effect/Cause"
import * as Data from "effect/Data"

/** The store failed; no effect of the call is durable. */
export class JournalError extends Data.TaggedError("JournalError")<{
  readonly message: string
  /** Another instance of the journal has claimed the lane; this instance's plans for it are out of date. */
  readonly isFenced?: true
}> {}

const isFence = (error: unknown): boolean => error instanceof JournalError && error.isFenced === true

/** Whether the cause is that another process has claimed the lane. */
export const isFenced = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) =>
    Cause.isFailReason(reason) ? isFence(reason.error) : Cause.isDieReason(reason) && isFence(reason.defect)
  )
