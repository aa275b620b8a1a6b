import * as Brand from "effect/Brand"
import type * as Redacted from "effect/Redacted"
import {
  type KeySource,
  type Registry,
  type SignerRecord,
  systemRoles
} from "../../application/keys/KeyRingRegistry.js"
import type { AccountId } from "../../application/ports/Tenants.js"
import type { Secret } from "./FileFields.js"
import type { KeysFile, Provider, SystemKey } from "./KeysFile.js"

type Redact = Redacted.Redacted<string>

interface Named {
  readonly name: string
}

/** A provider with its options: secrets read, paths absolute. */
export type ProviderConfig = Named &
  (
    | {
        readonly kind: "private-key"
        readonly keys: Readonly<Record<string, Redact | { readonly json: Redact; readonly password: Redact }>>
      }
    | {
        readonly kind: "pkcs11"
        readonly module: string
        readonly token: string
        readonly pin: Redact
        readonly sessions?: number
      }
    | {
        readonly kind: "aws-kms"
        readonly region: string
        readonly endpoint?: string
        readonly credentials?: {
          readonly accessKeyId: Redact
          readonly secretAccessKey: Redact
          readonly sessionToken?: Redact
        }
      }
    | {
        readonly kind: "gcp-kms"
        readonly endpoint?: {
          readonly host: string
          readonly port: number
          readonly protocol: "http" | "https"
        }
        readonly credentialsFile?: string
      }
    | {
        readonly kind: "azure-kv"
        readonly vaultUrl: string
        readonly credentials?: {
          readonly tenantId: string
          readonly clientId: string
          readonly clientSecret: Redact
          readonly authorityHost?: string
        }
      }
    | {
        readonly kind: "fireblocks"
        readonly apiKey: Redact
        readonly secretKey: Redact
        readonly basePath?: string
        readonly pollMillis?: number
        readonly timeoutMillis?: number
      }
  )

export interface KeysConfig {
  readonly providers: ReadonlyArray<ProviderConfig>
  readonly signers: ReadonlyArray<SignerRecord>
  readonly systemKeys: Registry["system"]
}

/** How a file's fields are read: problems are collected, so that all of them are told at once. */
export interface Reader {
  readonly say: (path: string, message: string) => void
  /** The secret; after a problem an empty one, of which nothing is made. */
  readonly secret: (path: string, reference: Secret) => Redact
  /** Relative to the file. */
  readonly path: (text: string) => string
}

/** The provider of the private keys that stand beside signers and system keys. */
const inPlace = "configuration"

const accountId = Brand.nominal<AccountId>()

const notInProduction =
  "private keys are for tests; outside the development profile they need allowPrivateKeys: true"

const endpointOf = (url: string) => {
  const { hostname, port, protocol } = new URL(url)
  const plain = protocol === "http:"
  return {
    host: hostname,
    port: port === "" ? (plain ? 80 : 443) : Number(port),
    protocol: plain ? ("http" as const) : ("https" as const)
  }
}

type PrivateKeys = Extract<ProviderConfig, { readonly kind: "private-key" }>
type KeyEntry = Extract<Provider, { readonly kind: "private-key" }>["keys"][number]

/** The configuration's part about keys, read from its file. */
export const read = (
  file: KeysFile,
  options: { readonly development: boolean; readonly accounts: ReadonlySet<string> },
  { path: absolute, say, secret }: Reader
): KeysConfig => {
  const privateKey = (path: string, reference: Secret): Redact => {
    if (!options.development && file.allowPrivateKeys !== true) say(path, notInProduction)
    return secret(path, reference)
  }

  const keyOf = (entry: KeyEntry, path: string): PrivateKeys["keys"][string] | null => {
    const { keystore, password } = entry
    if (entry.privateKey !== undefined && keystore === undefined && password === undefined)
      return privateKey(`${path}.privateKey`, entry.privateKey)
    if (entry.privateKey === undefined && keystore !== undefined && password !== undefined)
      return {
        json: secret(`${path}.keystore`, { file: keystore }),
        password: secret(`${path}.password`, password)
      }
    say(path, "needs either privateKey, or keystore and password")
    return null
  }

  const keysOf = (entries: ReadonlyArray<KeyEntry>, path: string): PrivateKeys["keys"] => {
    const keys = new Map<string, PrivateKeys["keys"][string]>()
    entries.forEach((entry, index) => {
      const key = keyOf(entry, `${path}[${index}]`)
      if (keys.has(entry.name)) say(`${path}[${index}].name`, `another key is called ${entry.name}`)
      if (key !== null) keys.set(entry.name, key)
    })
    return Object.fromEntries(keys)
  }

  const provider = (entry: Provider, path: string): ProviderConfig => {
    switch (entry.kind) {
      case "private-key":
        return { ...entry, keys: keysOf(entry.keys, `${path}.keys`) }
      case "pkcs11":
        return { ...entry, module: absolute(entry.module), pin: secret(`${path}.pin`, entry.pin) }
      case "aws-kms": {
        const { credentials, ...rest } = entry
        if (credentials === undefined) return rest
        const { accessKeyId, secretAccessKey, sessionToken } = credentials
        const at = `${path}.credentials`
        return {
          ...rest,
          credentials: {
            accessKeyId: secret(`${at}.accessKeyId`, accessKeyId),
            secretAccessKey: secret(`${at}.secretAccessKey`, secretAccessKey),
            ...(sessionToken !== undefined && {
              sessionToken: secret(`${at}.sessionToken`, sessionToken)
            })
          }
        }
      }
      case "gcp-kms": {
        const { credentialsFile, endpoint, ...rest } = entry
        return {
          ...rest,
          ...(endpoint !== undefined && { endpoint: endpointOf(endpoint) }),
          ...(credentialsFile !== undefined && { credentialsFile: absolute(credentialsFile) })
        }
      }
      case "azure-kv": {
        const { credentials, ...rest } = entry
        if (credentials === undefined) return rest
        const clientSecret = secret(`${path}.credentials.clientSecret`, credentials.clientSecret)
        return { ...rest, credentials: { ...credentials, clientSecret } }
      }
      case "fireblocks":
        return {
          ...entry,
          apiKey: secret(`${path}.apiKey`, entry.apiKey),
          secretKey: secret(`${path}.secretKey`, entry.secretKey)
        }
    }
  }

  const names = new Set<string>()
  const providers = (file.providers ?? []).map((entry, index): ProviderConfig => {
    const path = `providers[${index}]`
    if (names.has(entry.name)) say(`${path}.name`, `another provider is called ${entry.name}`)
    if (entry.name === inPlace) say(`${path}.name`, "this name is taken")
    names.add(entry.name)
    return provider(entry, path)
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
