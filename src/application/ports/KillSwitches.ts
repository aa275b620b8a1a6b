import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"

/** What one switch stops: writes by a key, or writes on a chain. */
export type Switched =
  | { readonly kind: "signer"; readonly address: Address }
  | { readonly kind: "chain"; readonly chainId: bigint }

export class KillSwitchesError extends Data.TaggedError("SwitchesError")<{ readonly message: string }> {}

/**
 * The operator's kill switches beside the one of a whole account, which is in `Principal`. Nothing is paused unless
 * something else is provided.
 */
export const KillSwitches = Context.Reference<{
  /** Whether the operator has paused it, as of less than a second ago. */
  readonly isPaused: (what: Switched) => Effect.Effect<boolean, KillSwitchesError>
}>("castellan/Switches", {
  defaultValue: (): {
    /** Whether the operator has paused it, as of less than a second ago. */
    readonly isPaused: (what: Switched) => Effect.Effect<boolean, KillSwitchesError>
  } => ({ isPaused: () => Effect.succeed(false) })
})
