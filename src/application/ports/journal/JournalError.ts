import * as Data from "effect/Data"

/** The store failed; nothing of the call is durable. */
export class JournalError extends Data.TaggedError("JournalError")<{ readonly message: string }> {}
