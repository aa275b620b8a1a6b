import { Agent, type AgentOptions } from "node:https"
import { KeyClient, type KeyClientOptions } from "@azure/keyvault-keys"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type KeyProvider, KeyProviderError, type ProviderKey } from "../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../domain/crypto/Secp256k1.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"

/** Issues tokens for the vault. */
export type TokenCredential = ConstructorParameters<typeof KeyClient>[1]

/** A Microsoft Entra application. */
export interface Credentials {
  readonly tenantId: string
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted<string>
  /** Absent: the public cloud's, https://login.microsoftonline.com. */
  readonly authorityHost?: string | undefined
}

/** Connection to a vault. A key's name is `name/version`, or `name` for the newest version. */
export interface Options {
  /** `https://NAME.vault.azure.net`, or a managed HSM's URL. */
  readonly vaultUrl: string
  /** Absent: `DefaultAzureCredential`. */
  readonly credentials?: Credentials | undefined
  /** Source of tokens, instead of `credentials`. */
  readonly credential?: TokenCredential | undefined
  /** Options of the HTTPS agent, for example a private CA or a resolver. */
  readonly agentOptions?: AgentOptions | undefined
  /** Time-out from the request to the last response byte, in ms. Default 7,000. */
  readonly timeoutMillis?: number | undefined
}

/** Fields that the SDKs of vaults and identities add to errors. */
interface RestError {
  readonly name?: unknown
  readonly code?: unknown
  readonly statusCode?: unknown
  readonly details?: { readonly error?: { readonly innerError?: { readonly code?: unknown } } }
  readonly errorResponse?: { readonly error?: unknown }
}

/** Errors with which an authority refuses a token to an application (RFC 6749, 5.2). */
const denials: ReadonlySet<string> = new Set([
  "access_denied",
  "invalid_client",
  "invalid_grant",
  "invalid_request",
  "invalid_scope",
  "unauthorized_client",
  "unsupported_grant_type"
])

/** The authority's error, which the SDK keeps only at the beginning of its message. */
const denialOf = (error: Error): string | undefined => {
  const name = error.name === "AuthenticationRequiredError" ? error.message.split(":", 1)[0] : undefined
  return name !== undefined && denials.has(name) ? name : undefined
}

/** Shows an external name only in the shape of a name. */
const named = (name: unknown): string | undefined =>
  typeof name === "string" && /^[A-Za-z][A-Za-z0-9_]{0,79}$/.test(name) ? name : undefined

/** Kind and case of an error: `Forbidden (KeyDisabled)`, `invalid_client`. */
const nameOf = ({ code, details, errorResponse, statusCode }: RestError): string => {
  const kind = named(errorResponse?.error) ?? named(code)
  const inner = named(details?.error?.innerError?.code)
  if (kind === undefined) return `HTTP status ${statusCode}`
  return inner === undefined || inner === kind ? kind : `${kind} (${inner})`
}

const reasonOf = (status: number, code: unknown): KeyProviderError["reason"] => {
  if (status === 404) return "notFound"
  // The requests are well-formed, so the key does not support the algorithm.
  if (status === 400 && code === "BadParameter") return "unsuitable"
  return status === 408 || status === 429 || status >= 500 ? "unavailable" : "refused"
}

const failure = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `Azure Key Vault: ${what}` })

/**
 * Converts an SDK error. No response, a broken one or a server error is `unavailable`; so are missing credentials, since
 * their sources come and go. The SDK's own refusals are plain Errors: a key outside its validity or without the operation,
 * or a challenge that names another vault.
 */
const fromSdk = (error: unknown): KeyProviderError => {
  const fields: RestError = typeof error === "object" && error !== null ? error : {}
  const status = fields.statusCode
  if (typeof status === "number" && status >= 400)
    return failure(reasonOf(status, fields.code), nameOf(fields))
  const denial = error instanceof Error ? denialOf(error) : undefined
  if (denial !== undefined) return failure("refused", denial)
  if (error instanceof Error && error.name === "Error")
    return failure("refused", "the key may not sign now, or the vault's challenge is for another service")
  return failure("unavailable", named(fields.code) ?? named(fields.name) ?? "no answer that could be read")
}

type Policy = NonNullable<KeyClientOptions["additionalPolicies"]>[number]["policy"]
type Connections = Pick<KeyClientOptions, "additionalPolicies" | "retryOptions">

/**
 * Shared settings of the SDKs' clients: connections that end with the scope, one time-out from the start to the last byte
 * (the SDKs' own ends with the headers), no retries.
 */
const connectionsOf = (
  timeoutMillis: number,
  agentOptions: AgentOptions
): Effect.Effect<Connections, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Agent({ ...agentOptions, keepAlive: true })),
      (agent) => Effect.sync(() => agent.destroy())
    ),
    (agent) => {
      const policy: Policy = {
        name: "castellanConnections",
        sendRequest: async (request, next) => {
          // Signals of AbortSignal.any may be garbage-collected before they fire.
          const ending = new AbortController()
          const end = () => ending.abort()
          const limit = setTimeout(end, timeoutMillis)
          const given = request.abortSignal
          given?.addEventListener("abort", end)
          if (given?.aborted === true) end()
          request.abortSignal = ending.signal
          // A managed identity's metadata server uses http.
          if (request.url.startsWith("https:")) request.agent = agent
          try {
            return await next(request)
          } finally {
            clearTimeout(limit)
            given?.removeEventListener("abort", end)
          }
        }
      }
      return { additionalPolicies: [{ policy, position: "perCall" }], retryOptions: { maxRetries: 0 } }
    }
  )

/**
 * The application's tokens, or the SDK's default chain (environment, workload and managed identity, developer tools).
 * An application's tokens come only from its own authority.
 */
const tokensOf = (credentials: Credentials | undefined, connections: Connections) =>
  Effect.tryPromise({
    try: async () => {
      const { ClientSecretCredential, DefaultAzureCredential } = await import("@azure/identity")
      if (credentials === undefined) return new DefaultAzureCredential(connections)
      const { authorityHost, clientId, clientSecret, tenantId } = credentials
      return new ClientSecretCredential(tenantId, clientId, Redacted.value(clientSecret), {
        ...connections,
        disableInstanceDiscovery: true,
        ...(authorityHost !== undefined && { authorityHost })
      })
    },
    catch: () => failure("refused", "the credentials cannot be used")
  })

const nameShape = /^([0-9A-Za-z-]{1,127})(?:\/([0-9a-f]{32}))?$/

const broken = failure("unavailable", "the answer lacks the requested data")
const unsuitable = failure("unsuitable", "the key is not of type EC, curve P-256K, with the operation sign")

const call = <A>(send: (abortSignal: AbortSignal) => Promise<A>): Effect.Effect<A, KeyProviderError> =>
  Effect.tryPromise({ try: send, catch: fromSdk })

const hexOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex")

const keyOf = (client: KeyClient, name: string, version?: string): ProviderKey => {
  const open = () =>
    client.getCryptographyClient(name, version === undefined ? undefined : { keyVersion: version })
  /**
   * Caches the key's validity and operations, and reads them before the first signature. The SDK sends its very first
   * request without a body, to get a token challenge, and that request must not be a signature.
   */
  let signing = open()

  const sign = Effect.fnUntraced(
    function* (digest: Bytes32) {
      const message = Buffer.from(digest.slice(2), "hex")
      const { result } = yield* call((abortSignal) => signing.sign("ES256K", message, { abortSignal }))
      if (!(result instanceof Uint8Array) || result.length !== 64) return yield* broken
      return {
        r: BigInt(`0x${hexOf(result.subarray(0, 32))}`),
        s: BigInt(`0x${hexOf(result.subarray(32))}`)
      }
    },
    Effect.tapError(() =>
      Effect.sync(() => {
        signing = open()
      })
    )
  )

  return {
    type: "KMS",
    maxBatch: 1,
    publicKey: Effect.gen(function* () {
      const options = version === undefined ? {} : { version }
      const found = yield* call((abortSignal) => client.getKey(name, { ...options, abortSignal }))
      if (found.name !== name || (version !== undefined && found.properties.version !== version))
        return yield* broken
      const { crv, kty, x, y } = found.key ?? {}
      const mayLive = kty === "EC" || kty === "EC-HSM"
      if (!mayLive || crv !== "P-256K" || found.keyOperations?.includes("sign") === false)
        return yield* unsuitable
      const point = `04${hexOf(x)}${hexOf(y)}`
      return x?.length === 32 && Secp256k1.isPublicKey(point) ? point : yield* broken
    }),
    sign: (digests) => Effect.forEach(digests, sign)
  }
}

const unknown = failure("notFound", "the name is neither NAME nor NAME/VERSION of a key")
const nowhere: ProviderKey = { type: "KMS", maxBatch: 1, publicKey: unknown, sign: () => unknown }

const isVaultUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { hash, password, pathname, protocol, search, username } = new URL(text)
  return protocol === "https:" && pathname === "/" && `${hash}${password}${search}${username}` === ""
}

/** Provides keys of an Azure key vault. The connections live as long as the scope. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<KeyProvider, KeyProviderError, Scope.Scope> {
  const { agentOptions = {}, credential, credentials, timeoutMillis = 7_000, vaultUrl } = options
  if (!isVaultUrl(vaultUrl)) return yield* failure("refused", "the vault's URL is not an https origin")
  const connections = yield* connectionsOf(timeoutMillis, agentOptions)
  const tokens = credential ?? (yield* tokensOf(credentials, connections))
  const client = new KeyClient(new URL(vaultUrl).origin, tokens, connections)
  return {
    key: (name) => {
      const [, plain, version] = nameShape.exec(name) ?? []
      return plain === undefined ? nowhere : keyOf(client, plain, version)
    }
  }
})
