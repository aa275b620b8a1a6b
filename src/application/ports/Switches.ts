import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/evm/Address.js"

/** What one switch stops: writes by a key, or writes on a chain. */
export type Switched =
  | { readonly kind: "signer"; readonly address: Address }
  | { readonly kind: "chain"; readonly chainId: bigint }

export class SwitchesError extends Data.TaggedError("SwitchesError")<{ readonly message: string }> {}

/**
 * The operator's kill switches beside the one of a whole account, which is in `Principal`. Nothing is paused unless
 * something else is provided.
 */
export class Switches extends Context.Reference<Switches>()("castellan/Switches", {
  defaultValue: (): {
    /** Whether the operator has paused it, as of less than a second ago. */
    readonly isPaused: (what: Switched) => Effect.Effect<boolean, SwitchesError>
  } => ({ isPaused: () => Effect.succeed(false) })
}) {}
