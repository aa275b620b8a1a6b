import type { Account, Key, OwnNetwork, OwnSigner } from "../../../application/ports/TenantStore.js"
import type { AccountId, Scope, Tier } from "../../../application/ports/Tenants.js"
import type { Address } from "../../../domain/primitives/Address.js"

export interface AccountRow {
  readonly account_id: AccountId
  readonly name: string
  readonly tier: Tier
  readonly requests_per_minute: number | null
  readonly requests_per_hour: number | null
  readonly created_at: number
}

export interface KeyRow {
  readonly hash: string
  readonly account_id: AccountId
  readonly scopes: string
  readonly origin: Key["origin"]
  readonly issued_at: number
  readonly ends_at: number | null
}

export interface NetworkRow {
  readonly account_id: AccountId
  readonly chain_id: string
  readonly factory: Address | null
  readonly settings: string
}

export interface SignerRow {
  readonly account_id: AccountId
  readonly client_id: string
  readonly version_id: string | null
  readonly asset_id: string | null
  readonly provider: string
  readonly key_name: string
  readonly address: Address | null
}

export const accountOf = (row: AccountRow): Account => ({
  accountId: row.account_id,
  name: row.name,
  tier: row.tier,
  ...(row.requests_per_minute !== null && { requestsPerMinute: row.requests_per_minute }),
  ...(row.requests_per_hour !== null && { requestsPerHour: row.requests_per_hour }),
  createdAt: row.created_at
})

export const keyOf = (row: KeyRow): Key => ({
  hash: row.hash,
  accountId: row.account_id,
  scopes: row.scopes.split(" ") as ReadonlyArray<Scope>,
  origin: row.origin,
  issuedAt: row.issued_at,
  endsAt: row.ends_at
})

export const rowOfKey = ({ accountId, endsAt, hash, issuedAt, origin, scopes }: Key): KeyRow => ({
  hash,
  account_id: accountId,
  scopes: scopes.join(" "),
  origin,
  issued_at: issuedAt,
  ends_at: endsAt
})

export const networkOf = (row: NetworkRow): OwnNetwork => ({
  accountId: row.account_id,
  chainId: BigInt(row.chain_id),
  factory: row.factory,
  settings: row.settings
})

export const signerOf = (row: SignerRow): OwnSigner => ({
  accountId: row.account_id,
  ref: {
    clientId: row.client_id,
    ...(row.version_id !== null && { versionId: row.version_id }),
    ...(row.asset_id !== null && { assetId: row.asset_id })
  },
  provider: row.provider,
  key: row.key_name,
  address: row.address
})
