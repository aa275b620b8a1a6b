import type * as Brand from "effect/Brand"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"

export type AccountId = string & Brand.Brand<"AccountId">
export type Tier = "free" | "pro" | "enterprise"
export type Scope = "read" | "write" | "sign" | "webhooks"

/** What an account has of its own instead of its tier's: requests per UTC minute and per UTC hour. */
export interface OwnLimits {
  readonly requestsPerMinute?: number
  readonly requestsPerHour?: number
}

/** Who a request acts for: the tenant, and what its key may do. */
export interface Principal extends OwnLimits {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  readonly scopes: ReadonlySet<Scope>
  readonly paused: boolean
}

export class TenantsError extends Data.TaggedError("AccountsError")<{ readonly message: string }> {}

/** The tenants and their API keys. */
export class Tenants extends Context.Service<
  Tenants,
  {
    /** Who holds this key; null when it is unknown or revoked. The look-up is by a keyed hash, so its time tells nothing. */
    readonly authenticate: (
      apiKey: Redacted.Redacted<string>
    ) => Effect.Effect<Principal | null, TenantsError>
  }
>()("castellan/Accounts") {}
