import * as Schema from "effect/Schema"
import * as Address from "../../domain/primitives/Address.js"
import { Name, optional, Secret, says } from "../fields/FileFields.js"
import * as KeyProviders from "../keys/KeyProviders.js"

/** A key of a provider. */
const keyOfProvider = { provider: Name, key: KeyProviders.KeyName, address: optional(Address.schema) }

/** A key that requests may name: one of a provider, or in short a private key. */
export const SignerEntry = Schema.Struct({
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

/** A key of the operator's own: one of a provider, or in short the secret of a private key. */
const SystemKey = Schema.Union([Schema.Struct(keyOfProvider), ...Secret.members]).annotate(
  says(
    'expected {"provider": "NAME", "key": "NAME"} with or without "address", or the private key as {"env": "NAME"} or {"file": "path"}; a text only in the development profile'
  )
)
export type SystemKey = typeof SystemKey.Type

/** The fields of the configuration file that are about keys. */
export const keyFields = {
  allowPrivateKeys: optional(Schema.Boolean),
  providers: optional(Schema.Array(KeyProviders.Entry)),
  signers: optional(Schema.Array(SignerEntry)),
  systemKeys: optional(
    Schema.Struct({
      deployer: optional(SystemKey),
      serviceEoa: optional(SystemKey),
      sponsor: optional(SystemKey)
    })
  )
}

const KeysFile = Schema.Struct(keyFields)
export type KeysFile = typeof KeysFile.Type
