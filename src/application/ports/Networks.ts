import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { NetworkProfile } from "./NetworkProfile.js"
import type { AccountId } from "./Tenants.js"

/** The chains of the service, and what each account changes of them. */
export class Networks extends Context.Service<
  Networks,
  {
    /** Null: unsupported chain. */
    readonly profile: (account: AccountId, chainId: bigint) => Effect.Effect<NetworkProfile | null>
    readonly chainIds: Effect.Effect<ReadonlyArray<bigint>>
  }
>()("castellan/Networks") {}
