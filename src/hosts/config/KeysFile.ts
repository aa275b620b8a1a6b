import * as Schema from "effect/Schema"
import * as Address from "../../domain/primitives/Address.js"
import { integer, Name, optional, Secret, says } from "./FileFields.js"

/** A key in its provider's own terms: label, ARN, resource name. */
const KeyName = Schema.NonEmptyTrimmedString.pipe(Schema.maxLength(512)).annotations(
  says("expected 1 to 512 characters without outer white space")
)

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"])

/** Credentials travel to it: in the clear within the machine only. */
const Url = Schema.String.pipe(
  Schema.filter((text) => {
    if (!URL.canParse(text)) return false
    const { hostname, password, protocol, username } = new URL(text)
    return (
      username + password === "" &&
      (protocol === "https:" || (protocol === "http:" && loopback.has(hostname)))
    )
  })
).annotations(says("expected an https URL without credentials; http to a loopback address only"))

const PrivateKeys = Schema.Struct({
  kind: Schema.Literal("private-key"),
  name: Name,
  keys: Schema.NonEmptyArray(
    Schema.Struct({
      name: KeyName,
      privateKey: optional(Secret),
      keystore: optional(Schema.NonEmptyString),
      password: optional(Secret)
    })
  )
})

const Pkcs11 = Schema.Struct({
  kind: Schema.Literal("pkcs11"),
  name: Name,
  module: Schema.NonEmptyString,
  token: Name,
  pin: Secret,
  sessions: optional(integer(1, 64))
})

const AwsKms = Schema.Struct({
  kind: Schema.Literal("aws-kms"),
  name: Name,
  region: Name,
  endpoint: optional(Url),
  credentials: optional(
    Schema.Struct({ accessKeyId: Secret, secretAccessKey: Secret, sessionToken: optional(Secret) })
  )
})

const GcpKms = Schema.Struct({
  kind: Schema.Literal("gcp-kms"),
  name: Name,
  endpoint: optional(Url),
  credentialsFile: optional(Schema.NonEmptyString)
})

const AzureKeyVault = Schema.Struct({
  kind: Schema.Literal("azure-kv"),
  name: Name,
  vaultUrl: Url,
  credentials: optional(
    Schema.Struct({
      tenantId: Name,
      clientId: Name,
      clientSecret: Secret,
      authorityHost: optional(Url)
    })
  )
})

const Fireblocks = Schema.Struct({
  kind: Schema.Literal("fireblocks"),
  name: Name,
  apiKey: Secret,
  secretKey: Secret,
  basePath: optional(Url),
  pollMillis: optional(integer(50, 10_000)),
  timeoutMillis: optional(integer(1_000, 24_000))
})

/** A place that holds keys. Which fields there are beside `name` goes by `kind`. */
export const Provider = Schema.Union(PrivateKeys, Pkcs11, AwsKms, GcpKms, AzureKeyVault, Fireblocks)
export type Provider = typeof Provider.Type

/** A key of a provider. */
const keyOfProvider = { provider: Name, key: KeyName, address: optional(Address.schema) }

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
const SystemKey = Schema.Union(Schema.Struct(keyOfProvider), ...Secret.members).annotations(
  says(
    'expected {"provider": "NAME", "key": "NAME"} with or without "address", or the private key as {"env": "NAME"} or {"file": "path"}; a text only in the development profile'
  )
)
export type SystemKey = typeof SystemKey.Type

/** The fields of the configuration file that are about keys. */
export const keyFields = {
  allowPrivateKeys: optional(Schema.Boolean),
  providers: optional(Schema.Array(Provider)),
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
