import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/**
 * Result of the clock's check since the process's start. `asking`: the chains are being queried. `unheard`: none has
 * answered. `trusted`: it is near the chains' time, or the operator has confirmed it. `doubted`: neither.
 */
export type Standing = "asking" | "unheard" | "trusted" | "doubted"

/** Whether the clock is good enough to delete or expire something by its age. Default: always. */
export const ClockTrust = Context.Reference<Trust>("castellan/ClockTrust", {
  defaultValue: (): Trust => ({
    mayDelete: Effect.succeed(true),
    mayExpire: Effect.succeed(true),
    become: () => Effect.void
  })
})

export interface Trust {
  /** Whether expired retention may delete data. A deletion can wait until a chain answers. */
  readonly mayDelete: Effect.Effect<boolean>
  /** Whether pending work may expire at its deadline. */
  readonly mayExpire: Effect.Effect<boolean>
  readonly become: (standing: Standing) => Effect.Effect<void>
}

export const make = (): Trust => {
  let standing: Standing = "asking"
  return {
    mayDelete: Effect.sync(() => standing === "trusted"),
    mayExpire: Effect.sync(() => standing === "trusted" || standing === "unheard"),
    become: (next) =>
      Effect.sync(() => {
        standing = next
      })
  }
}
