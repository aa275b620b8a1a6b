import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { AccountId } from "../Tenants.js"

/** One version of a setting that an account has made for itself. */
export interface Setting {
  readonly accountId: AccountId
  readonly name: "decisionHook" | `topUp:${bigint}`
  /** JSON, sealed at rest: it may hold secrets. Null: the version removes the setting. */
  readonly content: string | null
  /** Unix seconds. */
  readonly at: number
  /** The operator's name, or `key:` and the id of the account's key. */
  readonly by: string
  /** Null: set by command. */
  readonly requestId: string | null
}

/** The store is away, or holds what this program cannot read. */
export class SettingsError extends Data.TaggedError("SettingsError")<{ readonly message: string }> {}

/** Settings of all accounts, of the configuration file too. Versions are never changed or deleted. */
export class Settings extends Context.Service<
  Settings,
  {
    /** A new secret of 256 bits, in the form of Standard Webhooks. */
    readonly newSecret: Effect.Effect<string>
    readonly put: (setting: Setting) => Effect.Effect<void, SettingsError>
    /** The newest version; null: there is none, or it removes the setting. */
    readonly find: (
      accountId: AccountId,
      name: Setting["name"]
    ) => Effect.Effect<Setting | null, SettingsError>
    /** Accounts that have a setting of the name. */
    readonly having: (name: Setting["name"]) => Effect.Effect<ReadonlyArray<AccountId>, SettingsError>
  }
>()("castellan/Settings") {}
