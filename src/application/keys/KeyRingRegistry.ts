import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Address } from "../../domain/primitives/Address.js"
import type { KeyProvider, KeyProviderError } from "../ports/KeyProvider.js"
import type { AccountId } from "../ports/Tenants.js"
import type { RingKeyLimits } from "./RingKeyCall.js"

export interface KeySource {
  /** A name of `Registry.providers`. */
  readonly provider: string
  /** The key's name in the provider's own terms. */
  readonly key: string
  /** The required address. With it, the service also starts while the provider does not answer. */
  readonly address?: Address | undefined
}

/** A key that requests may name, by its client and exactly one of `versionId` and `assetId`. */
export interface SignerRecord {
  /** The accounts that may use it: one, unless it is `shared`. */
  readonly accountIds: ReadonlyArray<AccountId>
  readonly clientId: string
  readonly versionId?: string | undefined
  readonly assetId?: string | undefined
  readonly source: KeySource
  /** Lets several accounts reach this key's EOA. For development. */
  readonly shared?: boolean | undefined
}

export interface Provider {
  /** Opened when its first key is needed, and again while that fails. */
  readonly open: Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope>
  readonly limits?: Partial<RingKeyLimits> | undefined
}

export const systemRoles = ["deployer", "serviceEoa", "sponsor", "treasury"] as const
export type SystemRole = (typeof systemRoles)[number]

export interface Registry {
  readonly providers: Readonly<Record<string, Provider>>
  readonly signers: ReadonlyArray<SignerRecord>
  /** Using an absent key fails with `notConfigured`. */
  readonly system: { readonly [role in SystemRole]?: KeySource | undefined }
}

/** A record's name in messages. */
export const nameOf = (record: SignerRecord): string =>
  `signer ${JSON.stringify(record.clientId)} ${
    record.versionId === undefined
      ? `assetId ${JSON.stringify(record.assetId)}`
      : `versionId ${JSON.stringify(record.versionId)}`
  }`

export const nameOfRole = (role: SystemRole): string => `the system key ${role}`

/** JSON, so that different names never collide. */
export const referenceKey = (
  account: AccountId,
  kind: "version" | "asset",
  clientId: string,
  id: string
): string => JSON.stringify([account, kind, clientId, id])

export const clientKey = (account: AccountId, clientId: string): string => JSON.stringify([account, clientId])

/** The references that an account's requests use for the record's key. */
export const referencesOf = (record: SignerRecord): ReadonlyArray<readonly [AccountId, string]> =>
  [...new Set(record.accountIds)].map((account) => [
    account,
    referenceKey(
      account,
      record.versionId === undefined ? "asset" : "version",
      record.clientId,
      record.versionId ?? record.assetId ?? ""
    )
  ])
