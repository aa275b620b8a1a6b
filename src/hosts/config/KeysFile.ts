import * as Brand from "effect/Brand"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import {
  type KeySource,
  type Registry,
  type SignerRecord,
  systemRoles
} from "../../application/keys/KeyRingRegistry.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import * as Address from "../../domain/primitives/Address.js"
import { Name, optional, Secret, says } from "./FileFields.js"
import * as KeyProviders from "./KeyProviders.js"

/** A key of a provider. */
const keyOfProvider = { provider: Name, key: KeyProviders.KeyName, address: optional(Address.schema) }

/** A key that requests may name: a provider's key, or in short a private key. */
const SignerEntry = Schema.Struct({
  accounts: Schema.NonEmptyArray(Name),
  clientId: Name,
  versionId: optional(Name),
  assetId: optional(Name),
  provider: optional(keyOfProvider.provider),
  key: optional(keyOfProvider.key),
  address: keyOfProvider.address,
  privateKey: optional(Secret),
  shared: optional(Schema.Boolean)
})

/** A key of the operator: a provider's key, or in short the secret of a private key. */
const SystemKey = Schema.Union([Schema.Struct(keyOfProvider), ...Secret.members]).annotate(
  says(
    'expected {"provider": "NAME", "key": "NAME"} with or without "address", or the private key as {"env": "NAME"} or {"file": "path"}; a text only in the development profile'
  )
)
type SystemKey = typeof SystemKey.Type

/** Configuration fields about keys. */
export const keyFields = {
  allowPrivateKeys: optional(Schema.Boolean),
  providers: optional(Schema.Array(KeyProviders.Entry)),
  signers: optional(Schema.Array(SignerEntry)),
  systemKeys: optional(
    Schema.Struct({
      deployer: optional(SystemKey),
      serviceEoa: optional(SystemKey),
      sponsor: optional(SystemKey),
      treasury: optional(SystemKey)
    })
  )
}

const KeysFile = Schema.Struct(keyFields)
type KeysFile = typeof KeysFile.Type

type Redact = Redacted.Redacted<string>

export interface KeysConfig {
  readonly providers: ReadonlyArray<KeyProviders.Configured>
  readonly signers: ReadonlyArray<SignerRecord>
  readonly systemKeys: Registry["system"]
}

/** Provider of the private keys in signers and system keys. */
const inPlace = "configuration"

const accountId = Brand.nominal<AccountId>()

const notInProduction =
  "private keys are for tests; outside the development profile they need allowPrivateKeys: true"

/** Reads the key fields of the file. */
export const read = (
  file: KeysFile,
  options: { readonly development: boolean; readonly accounts: ReadonlySet<string> },
  given: Omit<KeyProviders.Reader, "privateKey">
): KeysConfig => {
  const { say, secret } = given
  const privateKey = (path: string, reference: Secret): Redact => {
    if (!options.development && file.allowPrivateKeys !== true) say(path, notInProduction)
    return secret(path, reference)
  }
  const reader: KeyProviders.Reader = { ...given, privateKey }

  const names = new Set<string>()
  const providers = (file.providers ?? []).map((entry, index): KeyProviders.Configured => {
    const path = `providers[${index}]`
    if (names.has(entry.name)) say(`${path}.name`, `another provider is called ${entry.name}`)
    if (entry.name === inPlace) say(`${path}.name`, "this name is taken")
    names.add(entry.name)
    return KeyProviders.read(entry, path, reader)
  })

  const written = new Map<string, Redact>()
  const sourceInPlace = (path: string, reference: Secret): KeySource => {
    written.set(path, privateKey(path, reference))
    return { provider: inPlace, key: path }
  }
  const sourceOf = (
    { address, key, provider }: Extract<SystemKey, { key: string }>,
    path: string
  ): KeySource => {
    if (!names.has(provider)) say(`${path}.provider`, `no provider is called ${provider}`)
    return { provider, key, ...(address !== undefined && { address }) }
  }

  const signers = (file.signers ?? []).flatMap((entry, index): ReadonlyArray<SignerRecord> => {
    const { accounts, address, key, privateKey, provider, shared, ...reference } = entry
    const path = `signers[${index}]`
    for (const id of accounts)
      if (!options.accounts.has(id)) say(`${path}.accounts`, `no account is called ${id}`)
    if ((entry.versionId === undefined) === (entry.assetId === undefined))
      say(path, "needs exactly one of versionId and assetId")
    if (shared === true && !options.development)
      say(`${path}.shared`, "a shared signer is possible in the development profile only")
    const record = { ...reference, accountIds: accounts.map((id) => accountId(id)), shared: shared ?? false }
    if (privateKey !== undefined && provider === undefined && key === undefined) {
      const source = sourceInPlace(`${path}.privateKey`, privateKey)
      return [{ ...record, source: { ...source, ...(address !== undefined && { address }) } }]
    }
    if (privateKey === undefined && provider !== undefined && key !== undefined)
      return [
        { ...record, source: sourceOf({ provider, key, ...(address !== undefined && { address }) }, path) }
      ]
    say(path, "needs either privateKey, or provider and key")
    return []
  })

  const systemKeys = Object.fromEntries(
    systemRoles.flatMap((role) => {
      const key = file.systemKeys?.[role]
      if (key === undefined) return []
      const path = `systemKeys.${role}`
      return [
        [role, typeof key === "object" && "key" in key ? sourceOf(key, path) : sourceInPlace(path, key)]
      ]
    })
  )
  return {
    providers:
      written.size === 0
        ? providers
        : [...providers, { kind: "private-key", name: inPlace, keys: Object.fromEntries(written) }],
    signers,
    systemKeys
  }
}
