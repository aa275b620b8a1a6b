import type { AgentOptions } from "node:https"
import { KeyClient } from "@azure/keyvault-keys"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type {
  KeyProvider,
  KeyProviderError,
  ProviderKey,
  RawSignature
} from "../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../domain/crypto/Secp256k1.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Connections from "./Connections.js"
import * as Credentials from "./Credentials.js"
import * as Failure from "./Failure.js"

/** How a vault is reached. The name of a key is `name/version`, or `name` for its newest version. */
export interface Options {
  /** `https://NAME.vault.azure.net`, or that of a managed HSM. */
  readonly vaultUrl: string
  /** Absent: `DefaultAzureCredential`. */
  readonly credentials?: Credentials.Credentials | undefined
  /** Instead of `credentials`: whatever gives out tokens. */
  readonly credential?: Credentials.TokenCredential | undefined
  /** A private CA, a resolver of names: what the HTTPS agent takes. */
  readonly agentOptions?: AgentOptions | undefined
  /** From asking to the last byte of the answer, by default 7,000. */
  readonly timeoutMillis?: number | undefined
}

const nameShape = /^([0-9A-Za-z-]{1,127})(?:\/([0-9a-f]{32}))?$/

const broken = Failure.make("unavailable", "the answer holds nothing that was asked for")
const unsuitable = Failure.make(
  "unsuitable",
  "the key is not of type EC, curve P-256K, with the operation sign"
)

const call = <A>(send: (abortSignal: AbortSignal) => Promise<A>): Effect.Effect<A, KeyProviderError> =>
  Effect.tryPromise({ try: send, catch: Failure.from })

const hexOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex")

const keyOf = (client: KeyClient, name: string, version?: string): ProviderKey => {
  const publicKey = Effect.gen(function* () {
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
  })

  const open = () =>
    client.getCryptographyClient(name, version === undefined ? undefined : { keyVersion: version })
  /**
   * Knows the key's times and operations from its first use on. It reads them before it signs: the SDK sends its very
   * first request without a body, to be challenged for a token, and that one must not be a signature's.
   */
  let signing = open()

  const sign = (digest: Bytes32): Effect.Effect<RawSignature, KeyProviderError> =>
    Effect.gen(function* () {
      const message = Buffer.from(digest.slice(2), "hex")
      const { result } = yield* call((abortSignal) => signing.sign("ES256K", message, { abortSignal }))
      if (!(result instanceof Uint8Array) || result.length !== 64) return yield* broken
      return {
        r: BigInt(`0x${hexOf(result.subarray(0, 32))}`),
        s: BigInt(`0x${hexOf(result.subarray(32))}`)
      }
    }).pipe(
      Effect.tapError(() =>
        Effect.sync(() => {
          signing = open()
        })
      )
    )

  return {
    type: "KMS",
    maxBatch: 1,
    publicKey,
    sign: (digests) => Effect.forEach(digests, sign)
  }
}

const unknown = Effect.fail(Failure.make("notFound", "the name is neither NAME nor NAME/VERSION of a key"))
const nowhere: ProviderKey = { type: "KMS", maxBatch: 1, publicKey: unknown, sign: () => unknown }

const isVaultUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { hash, password, pathname, protocol, search, username } = new URL(text)
  return protocol === "https:" && pathname === "/" && `${hash}${password}${search}${username}` === ""
}

/** Keys of an Azure key vault. The connections live as long as the scope. */
export const make = (options: Options): Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    const { agentOptions = {}, credential, credentials, timeoutMillis = 7_000, vaultUrl } = options
    if (!isVaultUrl(vaultUrl)) return yield* Failure.make("refused", "the vault's URL is no https origin")
    const connections = yield* Connections.make(timeoutMillis, agentOptions)
    const tokens = credential ?? (yield* Credentials.make(credentials, connections))
    const client = new KeyClient(new URL(vaultUrl).origin, tokens, connections)
    return {
      key: (name) => {
        const [, plain, version] = nameShape.exec(name) ?? []
        return plain === undefined ? nowhere : keyOf(client, plain, version)
      }
    }
  })
