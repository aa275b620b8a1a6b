import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { SignerRef } from "./Signers.js"
import type { AccountId, OwnLimits, Scope, Tier } from "./Tenants.js"

/** A tenant created by command; the configuration file's tenants are in no store. Times are Unix milliseconds. */
export interface Account extends OwnLimits {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  readonly createdAt: number
}

/** New values for an account's fields; a null limit restores the tier's. */
export interface AccountChange {
  readonly name?: string
  readonly tier?: Tier
  readonly requestsPerMinute?: number | null
  readonly requestsPerHour?: number | null
}

/** Applies a change to an account, or to its displayed form. */
export const apply = <A extends OwnLimits & { readonly name: string; readonly tier: Tier }>(
  account: A,
  change: AccountChange
) => {
  const { requestsPerHour, requestsPerMinute, ...rest } = { ...account, ...change }
  return {
    ...rest,
    ...(typeof requestsPerMinute === "number" && { requestsPerMinute }),
    ...(typeof requestsPerHour === "number" && { requestsPerHour })
  }
}

/** A stored API key, as its hash only. */
export interface Key {
  /** Keyed hash, 64 lower-case hex digits. */
  readonly hash: string
  /** An account of the store or of the configuration file. */
  readonly accountId: AccountId
  readonly scopes: ReadonlyArray<Scope>
  /** `file`: the configuration file lists the key, and the store holds only its end. */
  readonly origin: "command" | "file"
  readonly issuedAt: number
  /** The key stops working at this time; null: no end. */
  readonly endsAt: number | null
}

/** A key's name for operators: the first digits of its hash, which reveal nothing about the key. */
export const idOf = (hash: string): string => hash.slice(0, 12)

/** A stored account's settings for one chain. */
export interface OwnNetwork {
  readonly accountId: AccountId
  readonly chainId: bigint
  /** The settings' factory; no two accounts share one. */
  readonly factory: Address | null
  /** JSON with the fields of `accounts[].networks[]` in the configuration file; secrets by reference. */
  readonly settings: string
}

/** A configured provider's key that a stored account's requests may name. */
export interface OwnSigner {
  readonly accountId: AccountId
  readonly ref: SignerRef
  readonly provider: string
  readonly key: string
  readonly address: Address | null
}

/** An active kill switch. */
export interface Pause {
  readonly kind: "account" | "signer" | "chain"
  /** Account id, signer address or decimal chain id. */
  readonly subject: string
  readonly since: number
}

export interface Content {
  readonly accounts: ReadonlyArray<Account>
  readonly keys: ReadonlyArray<Key>
  readonly networks: ReadonlyArray<OwnNetwork>
  readonly signers: ReadonlyArray<OwnSigner>
  readonly pauses: ReadonlyArray<Pause>
}

/**
 * - `accountExists`, `unknownAccount`, `keyExists`, `unknownKey`: as named
 * - `factoryTaken`: another account has this factory on this chain
 * - `signerExists`: the account has a key under this reference
 * - `unavailable`: the store failed
 */
export class TenantStoreError extends Data.TaggedError("AccountStoreError")<{
  readonly reason:
    | "accountExists"
    | "unknownAccount"
    | "keyExists"
    | "unknownKey"
    | "factoryTaken"
    | "signerExists"
    | "unavailable"
  readonly message: string
}> {}

type Written = Effect.Effect<void, TenantStoreError>

/** Accounts, keys and kill switches that the operator's command line manages, for all processes of the service. */
export class TenantStore extends Context.Service<
  TenantStore,
  {
    /** Grows with every change of the content; cheap to read. */
    readonly version: Effect.Effect<number, TenantStoreError>
    /** In insertion order. At least as new as any version read before. */
    readonly content: Effect.Effect<Content, TenantStoreError>

    readonly createAccount: (account: Account) => Written
    readonly changeAccount: (account: AccountId, change: AccountChange) => Written

    /** Adds a key; in the same transaction ends the replaced key, whose policies in force bind the new key as well. */
    readonly addKey: (key: Key, replaced?: { readonly key: Key; readonly endsAt: number }) => Written
    /** Ends a key of the store or of the file. An existing end only ever moves forward. */
    readonly endKey: (key: Key, endsAt: number) => Written
    /** For keys issued by command only. */
    readonly setScopes: (hash: string, scopes: ReadonlyArray<Scope>) => Written

    /** Replaces the account's settings on the chain. */
    readonly setNetwork: (network: OwnNetwork) => Written
    readonly removeNetwork: (account: AccountId, chainId: bigint) => Written
    readonly addSigner: (signer: OwnSigner) => Written
    readonly removeSigner: (account: AccountId, ref: SignerRef) => Written

    /** An existing pause keeps its time. */
    readonly pause: (pause: Pause) => Written
    readonly resume: (kind: Pause["kind"], subject: string) => Written

    /** Records when keys were last used, by hash; older times are ignored. Does not change the content's version. */
    readonly noteUses: (uses: ReadonlyMap<string, number>) => Written
    /** When keys were last used, as far as recorded. */
    readonly uses: Effect.Effect<ReadonlyMap<string, number>, TenantStoreError>
  }
>()("castellan/AccountStore") {}
