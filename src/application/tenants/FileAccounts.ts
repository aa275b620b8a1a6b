import * as Effect from "effect/Effect"
import { type AccountId, type OwnLimits, type Scope, TenantsError, type Tier } from "../ports/Tenants.js"

export interface FileAccount extends OwnLimits {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  readonly paused?: boolean
  readonly keys: ReadonlyArray<{
    /** Keyed hash. */
    readonly hash: string
    /** Default: `defaultScopes`. */
    readonly scopes?: ReadonlyArray<Scope>
  }>
}

/** `FileAccount` with its defaults filled in. */
export interface Listed extends FileAccount {
  readonly paused: boolean
  readonly keys: ReadonlyArray<{ readonly hash: string; readonly scopes: ReadonlyArray<Scope> }>
}

/** Scopes of a key that names none. */
export const defaultScopes: ReadonlyArray<Scope> = ["read", "write", "sign", "webhooks"]

export const knownScopes = [
  "read",
  "write",
  "sign",
  "webhooks",
  "policies",
  "treasury"
] as const satisfies ReadonlyArray<Scope>

/** The problem of scopes in one key; null: none. A key that spends does not set its own rules. */
export const conflict = (scopes: ReadonlyArray<Scope>): string | null =>
  scopes.includes("policies") && scopes.some((scope) => scope === "write" || scope === "sign")
    ? "a key with the scope policies has neither write nor sign: issue two keys"
    : null

const hashShape = /^[0-9a-f]{64}$/

const fail = (message: string) => new TenantsError({ message })

/** Refuses invalid lists: a repeated account or key, or a malformed hash. */
export const check = Effect.fnUntraced(function* (accounts: ReadonlyArray<FileAccount>) {
  const hashes = new Set<string>()
  const ids = new Set<string>()
  for (const { accountId, keys } of accounts) {
    if (ids.has(accountId)) return yield* fail(`account ${accountId} is listed twice`)
    ids.add(accountId)
    for (const { hash } of keys) {
      if (!hashShape.test(hash))
        return yield* fail(`a key hash of account ${accountId} is not 64 lower-case hex digits`)
      if (hashes.has(hash)) return yield* fail(`a key of account ${accountId} is listed twice`)
      hashes.add(hash)
    }
  }
  return accounts.map((account) => ({
    ...account,
    paused: account.paused ?? false,
    keys: account.keys.map(({ hash, scopes }) => ({ hash, scopes: scopes ?? defaultScopes }))
  }))
})
