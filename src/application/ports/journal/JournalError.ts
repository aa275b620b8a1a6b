import * as Cause from "effect/Cause"
import * as Data from "effect/Data"

/** The store failed; nothing of the call is durable. */
export class JournalError extends Data.TaggedError("JournalError")<{
  readonly message: string
  /** Another instance of the journal has claimed the lane: whatever this one has in mind for it is out of date. */
  readonly isFenced?: true
}> {}

const isFence = (error: unknown): boolean => error instanceof JournalError && error.isFenced === true

/** Whether something has ended because its lane is another process's by now. */
export const isFenced = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) =>
    Cause.isFailReason(reason) ? isFence(reason.error) : Cause.isDieReason(reason) && isFence(reason.defect)
  )
