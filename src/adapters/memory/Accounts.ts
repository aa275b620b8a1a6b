import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import {
  type AccountId,
  Accounts,
  AccountsError,
  type Principal,
  type Scope,
  type Tier
} from "../../application/ports/Accounts.js"
import * as ApiKey from "./ApiKey.js"

/** A tenant and its keys. A revoked key is one that is not listed any more. */
export interface AccountRecord {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  readonly paused?: boolean
  readonly keys: ReadonlyArray<{
    /** HMAC-SHA-256 of the key under the pepper, see `ApiKey.hash`. */
    readonly hash: string
    /** Default: all. */
    readonly scopes?: ReadonlyArray<Scope>
  }>
}

export interface Options {
  /** Key of the hashes, at least 16 bytes. Every key is void when it changes. */
  readonly pepper: Redacted.Redacted<string>
  readonly accounts: ReadonlyArray<AccountRecord>
}

const allScopes: ReadonlyArray<Scope> = ["read", "write", "sign"]
const hashShape = /^[0-9a-f]{64}$/
const minimalPepperBytes = 16

const fail = (message: string) => Effect.fail(new AccountsError({ message }))

const index = (
  accounts: ReadonlyArray<AccountRecord>
): Effect.Effect<ReadonlyMap<string, Principal>, AccountsError> =>
  Effect.gen(function* () {
    const principals = new Map<string, Principal>()
    const ids = new Set<string>()
    for (const { accountId, keys, name, paused, tier } of accounts) {
      if (ids.has(accountId)) return yield* fail(`account ${accountId} is listed twice`)
      ids.add(accountId)
      for (const { hash, scopes } of keys) {
        if (!hashShape.test(hash))
          return yield* fail(`a key hash of account ${accountId} is not 64 lower-case hex digits`)
        if (principals.has(hash)) return yield* fail(`a key of account ${accountId} is listed twice`)
        principals.set(hash, {
          accountId,
          name,
          tier,
          scopes: new Set(scopes ?? allScopes),
          paused: paused ?? false
        })
      }
    }
    return principals
  })

/** The tenants of a list that does not change while the process runs. */
export const make = (options: Options): Effect.Effect<Context.Tag.Service<typeof Accounts>, AccountsError> =>
  Effect.gen(function* () {
    if (Buffer.byteLength(Redacted.value(options.pepper), "utf8") < minimalPepperBytes)
      return yield* fail(`the pepper of the API keys has less than ${minimalPepperBytes} bytes`)
    const principals = yield* index(options.accounts)
    return {
      // The time of the look-up depends on the hash, of which the sender of a key knows and chooses nothing.
      authenticate: (apiKey) =>
        Effect.sync(() =>
          ApiKey.is(Redacted.value(apiKey))
            ? (principals.get(ApiKey.hash(options.pepper, apiKey)) ?? null)
            : null
        )
    }
  })

export const layer = (options: Options): Layer.Layer<Accounts, AccountsError> =>
  Layer.effect(Accounts, make(options))
