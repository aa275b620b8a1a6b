import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"

export class OperatorLogError extends Data.TaggedError("OperatorLogError")<{ readonly message: string }> {}

/** What an operator did in the console. */
export interface OperatorAct {
  /** Name of the operator, by the configuration. */
  readonly operator: string
  readonly act: "pause" | "resume" | "unstick" | "cancel" | "release" | "drop" | "revoke"
  /** What it was done to: an account, a chain, a lane, a request or a key's prefix. */
  readonly subject: string
  readonly reason: string
}

/** An act as it was recorded. */
export interface Entry extends OperatorAct {
  /** Ascending, in the order of recording. */
  readonly number: bigint
  /** Unix milliseconds. */
  readonly at: number
}

/** Who did what, when and why. Nothing in it is ever changed or removed. */
export class OperatorLog extends Context.Service<
  OperatorLog,
  {
    /** Durable when it returns; the act is done after it. */
    readonly record: (act: OperatorAct) => Effect.Effect<void, OperatorLogError>
    /** The newest first, below `before` where a number is given; at most 1,000. */
    readonly find: (question: {
      readonly before?: bigint
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<Entry>, OperatorLogError>
  }
>()("castellan/OperatorLog") {}
