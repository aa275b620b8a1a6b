import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Provider as RingProvider } from "../../application/keys/KeyRingRegistry.js"
import * as RingKeyCall from "../../application/keys/RingKeyCall.js"
import { type KeyProvider, KeyProviderError, type ProviderKey } from "../../application/ports/KeyProvider.js"
import * as Packages from "../Packages.js"
import { integer, Name, optional, Secret, says, Text } from "./FileFields.js"

/**
 * Describes each kind of key provider: its fields, secrets, npm packages and adapter. `KeysFile` reads a file's
 * providers by it, `Wiring` opens them, and `castellan signers` creates keys.
 */

type Redact = Redacted.Redacted<string>

/** Reads a file's fields and collects their problems. */
export interface Reader {
  readonly say: (path: string, message: string) => void
  /** The secret; empty after a problem, and then unused. */
  readonly secret: (path: string, reference: Secret) => Redact
  /** A private key, which some configurations forbid. */
  readonly privateKey: (path: string, reference: Secret) => Redact
  /** Resolves a path relative to the file. */
  readonly path: (text: string) => string
}

/** Documentation of a kind. */
interface Help {
  readonly about: string
  /** The provider's term for a key's name. */
  readonly key: string
  /** Documentation page about creating keys. */
  readonly page: string
}

/** Kind and name of a provider in the configuration. */
interface Named<Kind extends string = string> {
  readonly kind: Kind
  readonly name: string
}

interface Technology<Options> {
  readonly make: (options: Options) => Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope>
  /** Creates a non-extractable key under a new label; returns its public key. */
  readonly create?: (options: Options, label: string) => Effect.Effect<string, KeyProviderError>
}

/** Definition of one kind of key provider. */
interface KeyProviderKind<Entry extends Named, Encoded, Options> {
  readonly schema: Schema.Codec<Entry, Encoded>
  /** Reads the options: secrets read, paths absolute. */
  readonly read: (entry: Entry, path: string, reader: Reader) => Options
  /** Optional npm packages that the provider needs. */
  readonly packages: ReadonlyArray<string>
  readonly load: () => Promise<Technology<Options>>
  /** Limits for keys that need more time, or fewer concurrent calls. */
  readonly limits?: Partial<RingKeyCall.RingKeyLimits>
  /** Type of its keys, known without a call. */
  readonly keyType: ProviderKey["type"]
  /** Whether it can create keys. Absent: see `help.page`. */
  readonly creates?: true
  readonly help: Help
}

const kindOf =
  <Entry extends Named, Encoded, Options>(
    schema: Schema.Codec<Entry, Encoded>,
    read: (entry: Entry, path: string, reader: Reader) => Options
  ) =>
  (
    more: Omit<KeyProviderKind<Entry, Encoded, Options>, "schema" | "read">
  ): KeyProviderKind<Entry, Encoded, Options> => ({ schema, read, ...more })

/** A key in the provider's terms: label, ARN, resource name. */
export const KeyName = Schema.Trimmed.check(Schema.isNonEmpty(), Schema.isMaxLength(512)).annotate(
  says("expected 1 to 512 characters without outer white space")
)

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"])

/** Credentials are sent to it: plain HTTP only within the machine. */
const Url = Schema.String.check(
  Schema.makeFilter((text) => {
    if (!URL.canParse(text)) return false
    const { hostname, password, protocol, username } = new URL(text)
    return (
      username + password === "" &&
      (protocol === "https:" || (protocol === "http:" && loopback.has(hostname)))
    )
  })
).annotate(says("expected an https URL without credentials; http to a loopback address only"))

/** Reads fields that are all secrets. */
const secretsOf = <Fields extends Readonly<Record<string, Secret | undefined>>>(
  fields: Fields,
  path: string,
  { secret }: Reader
) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, reference]) =>
      reference === undefined ? [] : [[name, secret(`${path}.${name}`, reference)]]
    )
  ) as { readonly [Name in keyof Fields]: Redact }

const PrivateKeyEntry = Schema.Struct({
  name: KeyName,
  privateKey: optional(Secret),
  keystore: optional(Text),
  password: optional(Secret)
})

type PrivateKey = Redact | { readonly json: Redact; readonly password: Redact }

const privateKeyOf = (
  { keystore, password, privateKey }: typeof PrivateKeyEntry.Type,
  path: string,
  reader: Reader
): PrivateKey | null => {
  if (privateKey !== undefined && keystore === undefined && password === undefined)
    return reader.privateKey(`${path}.privateKey`, privateKey)
  if (privateKey === undefined && keystore !== undefined && password !== undefined)
    return {
      json: reader.secret(`${path}.keystore`, { file: keystore }),
      password: reader.secret(`${path}.password`, password)
    }
  reader.say(path, "needs either privateKey, or keystore and password")
  return null
}

const endpointOf = (url: string) => {
  const { hostname, port, protocol } = new URL(url)
  const plain = protocol === "http:"
  return {
    host: hostname,
    port: port === "" ? (plain ? 80 : 443) : Number(port),
    protocol: plain ? ("http" as const) : ("https" as const)
  }
}

/** Kinds of key providers, by name in the configuration. Add a new kind here. */
const list = {
  "private-key": kindOf(
    Schema.Struct({
      kind: Schema.Literal("private-key"),
      name: Name,
      keys: Schema.NonEmptyArray(PrivateKeyEntry)
    }),
    ({ keys: entries, ...entry }, path, reader) => {
      const keys = new Map<string, PrivateKey>()
      entries.forEach((entry, index) => {
        const at = `${path}.keys[${index}]`
        const key = privateKeyOf(entry, at, reader)
        if (keys.has(entry.name)) reader.say(`${at}.name`, `another key is called ${entry.name}`)
        if (key !== null) keys.set(entry.name, key)
      })
      return { ...entry, keys: Object.fromEntries(keys) }
    }
  )({
    packages: [],
    load: () => import("../../adapters/keys/PrivateKeys.js"),
    // Decrypting a keystore takes about a second.
    limits: { attemptMillis: 60_000, resolveMillis: 60_000 },
    keyType: "PRIVATE_KEY",
    help: {
      about: "encrypted keystore files, and raw private keys",
      key: "its `name` there",
      page: "docs/signers.md"
    }
  }),
  pkcs11: kindOf(
    Schema.Struct({
      kind: Schema.Literal("pkcs11"),
      name: Name,
      module: Text,
      token: Name,
      pin: Secret,
      sessions: optional(integer(1, 64))
    }),
    ({ module, pin, ...entry }, path, reader) => ({
      ...entry,
      module: reader.path(module),
      ...secretsOf({ pin }, path, reader)
    })
  )({
    packages: ["pkcs11js"],
    load: () => import("../../adapters/keys/pkcs11/KeyProvider.js"),
    keyType: "HSM",
    creates: true,
    help: {
      about: "an HSM, or any other token with a PKCS #11 library",
      key: "the key's label, or `id:` and its id in hex",
      page: "docs/signers/pkcs11.md"
    }
  }),
  "aws-kms": kindOf(
    Schema.Struct({
      kind: Schema.Literal("aws-kms"),
      name: Name,
      region: Name,
      endpoint: optional(Url),
      credentials: optional(
        Schema.Struct({ accessKeyId: Secret, secretAccessKey: Secret, sessionToken: optional(Secret) })
      )
    }),
    ({ credentials, ...entry }, path, reader) => ({
      ...entry,
      ...(credentials !== undefined && {
        credentials: secretsOf(credentials, `${path}.credentials`, reader)
      })
    })
  )({
    packages: ["@aws-sdk/client-kms"],
    load: () => import("../../adapters/keys/AwsKms.js"),
    keyType: "KMS",
    help: { about: "AWS KMS", key: "key id, ARN or alias", page: "docs/signers/aws-kms.md" }
  }),
  "gcp-kms": kindOf(
    Schema.Struct({
      kind: Schema.Literal("gcp-kms"),
      name: Name,
      endpoint: optional(Url),
      credentialsFile: optional(Text)
    }),
    ({ credentialsFile, endpoint, ...entry }, _, reader) => ({
      ...entry,
      ...(endpoint !== undefined && { endpoint: endpointOf(endpoint) }),
      ...(credentialsFile !== undefined && { credentialsFile: reader.path(credentialsFile) })
    })
  )({
    packages: ["@google-cloud/kms"],
    load: () => import("../../adapters/keys/gcp-kms/KeyProvider.js"),
    keyType: "KMS",
    help: {
      about: "Google Cloud KMS and Cloud HSM",
      key: "resource name of the key version",
      page: "docs/signers/gcp-kms.md"
    }
  }),
  "azure-kv": kindOf(
    Schema.Struct({
      kind: Schema.Literal("azure-kv"),
      name: Name,
      vaultUrl: Url,
      credentials: optional(
        Schema.Struct({ tenantId: Name, clientId: Name, clientSecret: Secret, authorityHost: optional(Url) })
      )
    }),
    ({ credentials, ...entry }, path, reader) => {
      if (credentials === undefined) return entry
      const { clientSecret, ...shown } = credentials
      const secret = secretsOf({ clientSecret }, `${path}.credentials`, reader)
      return { ...entry, credentials: { ...shown, ...secret } }
    }
  )({
    packages: ["@azure/keyvault-keys", "@azure/identity"],
    load: () => import("../../adapters/keys/AzureKeyVault.js"),
    keyType: "KMS",
    help: {
      about: "Azure Key Vault and Managed HSM",
      key: "`name/version`",
      page: "docs/signers/azure-kv.md"
    }
  }),
  fireblocks: kindOf(
    Schema.Struct({
      kind: Schema.Literal("fireblocks"),
      name: Name,
      apiKey: Secret,
      secretKey: Secret,
      basePath: optional(Url),
      pollMillis: optional(integer(50, 10_000)),
      timeoutMillis: optional(integer(1_000, 24_000))
    }),
    ({ apiKey, secretKey, ...entry }, path, reader) => ({
      ...entry,
      ...secretsOf({ apiKey, secretKey }, path, reader)
    })
  )({
    packages: ["@fireblocks/ts-sdk"],
    load: () => import("../../adapters/keys/fireblocks/KeyProvider.js"),
    // One transaction carries many digests and may wait for an approver, so it gets the total time.
    limits: { attemptMillis: RingKeyCall.defaults.totalMillis, inFlight: 4 },
    keyType: "MPC",
    help: {
      about: "Fireblocks raw signing (MPC)",
      key: "`vaultAccountId/assetId`",
      page: "docs/signers/fireblocks.md"
    }
  })
}
type List = typeof list

export type Kind = keyof List

type Entries = { readonly [K in Kind]: List[K]["schema"]["Type"] }
type Options = { readonly [K in Kind]: ReturnType<List[K]["read"]> }

export const kinds: {
  readonly [K in Kind]: KeyProviderKind<Entries[K], List[K]["schema"]["Encoded"], Options[K]>
} = list

/** A provider in the configuration file; `kind` decides the other fields. */
export const Entry = Schema.Union(Object.values(list).map(({ schema }) => schema))
export type Entry<K extends Kind = Kind> = { readonly [P in K]: Named<P> & Entries[P] }[K]

/** A configured provider with its options: secrets read, paths absolute. */
export type Configured<K extends Kind = Kind> = {
  readonly [P in K]: Named<P> & Options[P]
}[K]

export const read = <K extends Kind>(entry: Entry<K>, path: string, reader: Reader): Options[K] =>
  kinds[entry.kind].read(entry, path, reader)

/** Loads a provider's module on first use. `packages`: npm packages that it needs. */
export const loadModule = <M>(
  kind: string,
  packages: ReadonlyArray<string>,
  load: () => Promise<M>
): Effect.Effect<M, KeyProviderError> =>
  Effect.tryPromise({
    try: load,
    catch: () =>
      new KeyProviderError({
        reason: "refused",
        message: `packages of kind ${kind} are not installed: ${Packages.installation(packages)}`
      })
  })

/** A configured provider in the key ring's form. */
export const provider = <K extends Kind>(configured: Configured<K>): RingProvider => {
  const { limits, load, packages } = kinds[configured.kind]
  const open = Effect.flatMap(loadModule(configured.kind, packages, load), ({ make }) => make(configured))
  return { open, limits }
}

/** Creates a key at the provider under a new label; returns its public key. Null: the kind cannot create keys. */
export const createKey = <K extends Kind>(
  configured: Configured<K>,
  label: string
): Effect.Effect<string, KeyProviderError> | null => {
  const { creates, load, packages } = kinds[configured.kind]
  if (creates === undefined) return null
  return Effect.flatMap(
    loadModule(configured.kind, packages, load),
    ({ create }) => create?.(configured, label) ?? Effect.die("its technology makes no keys")
  )
}
