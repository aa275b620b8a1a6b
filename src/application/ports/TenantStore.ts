import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { SignerRef } from "./Signers.js"
import type { AccountId, OwnLimits, Scope, Tier } from "./Tenants.js"

/** A tenant that was made by command; those of the configuration file are in no store. Times are Unix milliseconds. */
export interface Account extends OwnLimits {
  readonly accountId: AccountId
  readonly name: string
  readonly tier: Tier
  readonly createdAt: number
}

/** What is said of an account anew; a limit of null is its tier's again. */
export interface AccountChange {
  readonly name?: string
  readonly tier?: Tier
  readonly requestsPerMinute?: number | null
  readonly requestsPerHour?: number | null
}

/** The account, or what is shown of it, after a change. */
export const changed = <A extends OwnLimits & { readonly name: string; readonly tier: Tier }>(
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

/** What is kept of an API key: never the key. */
export interface Key {
  /** Its keyed hash, 64 lower-case hex digits. */
  readonly hash: string
  /** Of the store or of the configuration file. */
  readonly accountId: AccountId
  readonly scopes: ReadonlyArray<Scope>
  /** `file`: the configuration file lists it, and what is kept here is only when it ends. */
  readonly origin: "command" | "file"
  readonly issuedAt: number
  /** It is dead from this time on; null: it has no end. */
  readonly endsAt: number | null
}

/** What an account of the store has of its own on one chain. */
export interface OwnNetwork {
  readonly accountId: AccountId
  readonly chainId: bigint
  /** The one of the settings: no two accounts have the same. */
  readonly factory: Address | null
  /** JSON of what `accounts[].networks[]` of the configuration file may say; secrets by reference. */
  readonly settings: string
}

/** A key of a configured provider that the requests of an account of the store may name. */
export interface OwnSigner {
  readonly accountId: AccountId
  readonly ref: SignerRef
  readonly provider: string
  readonly key: string
  readonly address: Address | null
}

/** A kill switch that is thrown. */
export interface Pause {
  readonly kind: "account" | "signer" | "chain"
  /** Account id, address of the signer, decimal chain id. */
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
 * - `accountExists`, `unknownAccount`, `keyExists`, `unknownKey`: as they say
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

/** What the operator's command line says of accounts, keys and kill switches, for all processes of the service. */
export class TenantStore extends Context.Service<
  TenantStore,
  {
    /** Grows with every change of the content; cheap. */
    readonly version: Effect.Effect<number, TenantStoreError>
    /** In the order in which it came. At least as new as a version that was read before. */
    readonly content: Effect.Effect<Content, TenantStoreError>

    readonly createAccount: (account: Account) => Written
    readonly changeAccount: (account: AccountId, change: AccountChange) => Written

    /** Keeps a fresh key; in the same step the one that it replaces gets its end. */
    readonly addKey: (key: Key, replaced?: { readonly key: Key; readonly endsAt: number }) => Written
    /** Ends a key of the store or of the file. An end that it has is only ever moved forward. */
    readonly endKey: (key: Key, endsAt: number) => Written
    /** Of a key that was issued by command. */
    readonly setScopes: (hash: string, scopes: ReadonlyArray<Scope>) => Written

    /** In place of what the account had on the chain. */
    readonly setNetwork: (network: OwnNetwork) => Written
    readonly removeNetwork: (account: AccountId, chainId: bigint) => Written
    readonly addSigner: (signer: OwnSigner) => Written
    readonly removeSigner: (account: AccountId, ref: SignerRef) => Written

    /** A pause that is there keeps its time. */
    readonly pause: (pause: Pause) => Written
    readonly resume: (kind: Pause["kind"], subject: string) => Written

    /** Notes when keys were used, by their hash. No change of the content; an older time than the noted one is none. */
    readonly noteUses: (uses: ReadonlyMap<string, number>) => Written
    /** When keys were last used, as far as it was noted. */
    readonly uses: Effect.Effect<ReadonlyMap<string, number>, TenantStoreError>
  }
>()("castellan/AccountStore") {}
