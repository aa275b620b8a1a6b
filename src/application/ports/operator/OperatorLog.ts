import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"

export class OperatorLogError extends Data.TaggedError("OperatorLogError")<{ readonly message: string }> {}

/** An operator's act in the console or by command. */
export interface OperatorAct {
  /** Name of the operator in the configuration; `command line` and the given name for a command. */
  readonly operator: string
  readonly act: "pause" | "resume" | "unstick" | "cancel" | "release" | "drop" | "revoke" | "set" | "remove"
  /** Target: an account, a chain, a lane, a request, a key's prefix or a policy. */
  readonly subject: string
  readonly reason: string
}

/** Longest reason, characters. */
export const maxReason = 500

/** The reason of a command without one. */
export const reasonOfCommand = "by command"

export interface Entry extends OperatorAct {
  /** Ascending, in the order of recording. */
  readonly number: bigint
  /** Unix milliseconds. */
  readonly at: number
}

/** Records who did which act, when and why. Entries are never changed or removed. */
export class OperatorLog extends Context.Service<
  OperatorLog,
  {
    /** Durable when it returns; the act follows. */
    readonly record: (act: OperatorAct) => Effect.Effect<void, OperatorLogError>
    /** Newest first, below `before` where a number is given; at most 1,000. */
    readonly find: (question: {
      readonly before?: bigint
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<Entry>, OperatorLogError>
  }
>()("castellan/OperatorLog") {}
