import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { AccountId } from "./Tenants.js"

/** Scope of a switch: writes by a key, writes on a chain, or what the service does for an account by itself. */
export type Switched =
  | { readonly kind: "signer"; readonly address: Address }
  | { readonly kind: "chain"; readonly chainId: bigint }
  | { readonly kind: "account"; readonly accountId: AccountId }

/** The switches cannot be read; writes are then refused. */
export class KillSwitchesError extends Data.TaggedError("KillSwitchesError")<{ readonly message: string }> {}

/** The operator's kill switches; requests of accounts have `Principal.paused`. Default: none is paused. */
export const KillSwitches = Context.Reference<{
  /** Whether the operator has paused it; less than a second old. */
  readonly isPaused: (what: Switched) => Effect.Effect<boolean, KillSwitchesError>
}>("castellan/Switches", {
  defaultValue: (): {
    readonly isPaused: (what: Switched) => Effect.Effect<boolean, KillSwitchesError>
  } => ({ isPaused: () => Effect.succeed(false) })
})
