import * as Cause from "effect/Cause"
import * as Data from "effect/Data"

/** The store failed. */
export class JournalError extends Data.TaggedError("JournalError")<{
  readonly message: string
  /** Another instance of the journal has claimed the lane; this instance's plans for it are out of date. */
  readonly isFenced?: true
  /** The store has rolled the call back. Without this, the call may have taken effect: its reply may be lost. */
  readonly isUndone?: true
}> {}

const has =
  (mark: "isFenced" | "isUndone") =>
  (cause: Cause.Cause<unknown>): boolean =>
    cause.reasons.some((reason) => {
      const error = Cause.isFailReason(reason)
        ? reason.error
        : Cause.isDieReason(reason)
          ? reason.defect
          : null
      return error instanceof JournalError && error[mark] === true
    })

/**
 * Whether the cause is that another process has claimed the lane.
 *
 * @example JournalError.isFenced(Cause.fail(new JournalError.JournalError({ message: "lane claimed", isFenced: true })))
 * // true
 */
export const isFenced = has("isFenced")

/**
 * Whether the call certainly has no effect.
 *
 * @example JournalError.isUndone(Cause.fail(new JournalError.JournalError({ message: "connection lost" })))
 * // false
 */
export const isUndone = has("isUndone")
