import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/**
 * What is known of this process's clock since its start. `asking`: the chains are being asked. `unheard`: none has answered.
 * `trusted`: it is near to the chains' time, or the operator has confirmed it. `doubted`: neither.
 */
export type Standing = "asking" | "unheard" | "trusted" | "doubted"

/** Whether the clock is good enough to do away with something for its age. It always is, unless something else is provided. */
export const ClockTrust = Context.Reference<Trust>("castellan/ClockTrust", {
  defaultValue: (): Trust => ({
    mayDelete: Effect.succeed(true),
    mayExpire: Effect.succeed(true),
    become: () => Effect.void
  })
})

export interface Trust {
  /** What has been kept for its time may be deleted. It can wait until a chain answers. */
  readonly mayDelete: Effect.Effect<boolean>
  /** What waits may be given up when its time is over. */
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
