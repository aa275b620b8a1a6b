import type * as Brand from "effect/Brand"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"

/** Id of an account, which is never used again. */
export type AccountId = string & Brand.Brand<"AccountId">
/** The account's default rate limits. */
export type Tier = "free" | "pro" | "enterprise"
/** Permissions of an API key. */
export type Scope = "read" | "write" | "sign" | "webhooks" | "policies" | "treasury"

/** Limits that replace the tier's: requests per UTC minute and per UTC hour. */
export interface OwnLimits {
  readonly requestsPerMinute?: number
  readonly requestsPerHour?: number
}

/** The tenant that a request acts for, and its key's permissions. */
export interface Principal extends OwnLimits {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  readonly scopes: ReadonlySet<Scope>
  readonly paused: boolean
  /** The key's id (`TenantStore.idOf`); null: no key was used. */
  readonly keyId: string | null
}

/** Accounts cannot be read; the request is answered 503. */
export class TenantsError extends Data.TaggedError("AccountsError")<{ readonly message: string }> {}

/** The tenants and their API keys. */
export class Tenants extends Context.Service<
  Tenants,
  {
    /** The key's holder; null: unknown or revoked. Searches by a keyed hash: the duration reveals nothing. */
    readonly authenticate: (
      apiKey: Redacted.Redacted<string>
    ) => Effect.Effect<Principal | null, TenantsError>
    /** Whether the account has a key with this id (`TenantStore.idOf`). Absent: keys have no ids. */
    readonly hasKey?: (accountId: AccountId, keyId: string) => Effect.Effect<boolean, TenantsError>
  }
>()("castellan/Accounts") {}
