import { KeyManagementServiceClient, type protos } from "@google-cloud/kms"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type {
  KeyProvider,
  KeyProviderError,
  ProviderKey,
  RawSignature
} from "../../application/ports/KeyProvider.js"
import * as Der from "../../domain/crypto/Der.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Crc32c from "./Crc32c.js"
import * as Credentials from "./Credentials.js"
import * as Failure from "./Failure.js"
import * as Transport from "./Transport.js"

/**
 * How Google Cloud KMS is reached. The name of a key is the full resource name of one version of it:
 * `projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V`.
 */
export interface Options {
  /** Absent: cloudkms.googleapis.com. */
  readonly endpoint?:
    | { readonly host: string; readonly port: number; readonly protocol: "http" | "https" }
    | undefined
  /** A JSON file of a service account or of a workload identity. Absent: application default credentials. */
  readonly credentialsFile?: string | undefined
  /** From asking to the last byte of the answer, by default 7,000. */
  readonly timeoutMillis?: number | undefined
}

type Client = KeyManagementServiceClient
type Wrapped = protos.google.protobuf.IInt64Value | null | undefined

/** A segment holds no slash and nothing that means something else in a URL. */
const nameShape =
  /^projects\/[^/?#%]+\/locations\/[^/?#%]+\/keyRings\/[\w-]{1,63}\/cryptoKeys\/[\w-]{1,63}\/cryptoKeyVersions\/\d{1,19}$/

/** Once: the ring makes calls again. */
const once = { retry: { retryCodes: [] } }

/** True when the sender's sum is of these bytes. An absent sum is a wrong one. */
const arrived = (bytes: Uint8Array, sum: Wrapped): boolean => String(sum?.value) === String(Crc32c.of(bytes))

const pemShape = /^-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=\n]+)\n-----END PUBLIC KEY-----\n?$/

/** The DER in a PEM, which holds it in base64 in the one way there is. */
const unwrapped = (pem: string): Buffer | null => {
  const base64 = pemShape.exec(pem)?.[1]?.replaceAll("\n", "") ?? ""
  const der = Buffer.from(base64, "base64")
  return der.length > 0 && der.toString("base64") === base64 ? der : null
}

const hexOf = (bytes: Uint8Array): Hex.Hex => Hex.unsafe(`0x${Buffer.from(bytes).toString("hex")}`)

const changed = Failure.make("unavailable", "the answer is not as it was sent")
const broken = Failure.make("unavailable", "the answer holds nothing that was asked for")
const unsuitable = Failure.make("unsuitable", "the key version is not of algorithm EC_SIGN_SECP256K1_SHA256")

const call = <A>(
  client: Client,
  send: () => Promise<[A, ...ReadonlyArray<unknown>]>
): Effect.Effect<A, KeyProviderError> =>
  Effect.tryPromise({
    try: async () => {
      await Credentials.prepare(client)
      const [answer] = await send()
      return answer
    },
    catch: Failure.from
  })

const keyOf = (client: Client, name: string): ProviderKey => {
  const publicKey = Effect.gen(function* () {
    const answer = yield* call(client, () => client.getPublicKey({ name }, once))
    if (answer.name !== name || !answer.pem) return yield* broken
    if (!arrived(Buffer.from(answer.pem), answer.pemCrc32c)) return yield* changed
    if (answer.algorithm !== "EC_SIGN_SECP256K1_SHA256") return yield* unsuitable
    const der = unwrapped(answer.pem)
    if (der === null) return yield* broken
    return yield* Effect.fromResult(
      Result.mapError(Der.publicKey(hexOf(der)), (problem) => (problem === "otherKind" ? unsuitable : broken))
    )
  })

  const sign = (digest: Hex.Bytes32): Effect.Effect<RawSignature, KeyProviderError> =>
    Effect.gen(function* () {
      const sha256 = Buffer.from(digest.slice(2), "hex")
      const answer = yield* call(client, () =>
        client.asymmetricSign({ name, digest: { sha256 }, digestCrc32c: { value: Crc32c.of(sha256) } }, once)
      )
      const { signature } = answer
      if (answer.name !== name || !(signature instanceof Uint8Array) || signature.length === 0)
        return yield* broken
      if (answer.verifiedDigestCrc32c !== true || !arrived(signature, answer.signatureCrc32c))
        return yield* changed
      return yield* Effect.fromResult(Result.mapError(Der.signature(hexOf(signature)), () => broken))
    })

  const known = <A>(effect: Effect.Effect<A, KeyProviderError>) =>
    nameShape.test(name)
      ? effect
      : Effect.fail(Failure.make("notFound", "the name is not the full resource name of a key version"))

  return {
    type: "KMS",
    maxBatch: 1,
    publicKey: known(publicKey),
    sign: (digests) => known(Effect.forEach(digests, sign))
  }
}

/** Keys of Google Cloud KMS. The connections live as long as the scope. */
export const make = (options: Options): Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    const { credentialsFile, endpoint, timeoutMillis = 7_000 } = options
    const credentials = credentialsFile === undefined ? undefined : yield* Credentials.read(credentialsFile)
    const fetchImplementation = yield* Transport.make(timeoutMillis)
    const client = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new KeyManagementServiceClient({
            fallback: true,
            clientOptions: {
              transporterOptions: { fetchImplementation, retryConfig: { shouldRetry: () => false } }
            },
            ...(credentials === undefined ? {} : { credentials }),
            ...(endpoint === undefined
              ? {}
              : { apiEndpoint: endpoint.host, port: endpoint.port, protocol: endpoint.protocol })
          })
      ),
      (open) => Effect.ignore(Effect.tryPromise(() => open.close()))
    )
    if (credentials !== undefined)
      yield* Effect.tryPromise({ try: () => Credentials.prepare(client), catch: () => Credentials.unusable })
    return { key: (name) => keyOf(client, name) }
  })
