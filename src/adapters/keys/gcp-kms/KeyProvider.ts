import { readFile } from "node:fs/promises"
import { KeyManagementServiceClient, type protos } from "@google-cloud/kms"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import {
  type KeyProvider,
  KeyProviderError,
  type ProviderKey
} from "../../../application/ports/KeyProvider.js"
import * as Der from "../../../domain/crypto/Der.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Crc32c from "./Crc32c.js"
import * as Transport from "./Transport.js"

/**
 * Connection to Google Cloud KMS. A key's name is the full resource name of a key version:
 * `projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V`.
 */
export interface Options {
  /** Absent: cloudkms.googleapis.com. */
  readonly endpoint?:
    | { readonly host: string; readonly port: number; readonly protocol: "http" | "https" }
    | undefined
  /** JSON file of a service account or workload identity. Absent: application default credentials. */
  readonly credentialsFile?: string | undefined
  /** Time-out from the request to the last response byte, in ms. Default 7,000. */
  readonly timeoutMillis?: number | undefined
}

/** Fields that the SDK's transport adds to errors: the response, with its body as text or parsed JSON. */
interface Answered {
  /** Network code, for example `ECONNREFUSED`. */
  readonly code?: unknown
  readonly response?: { readonly status?: unknown; readonly data?: unknown }
}

/** Transient canonical codes of Google's APIs. */
const passing: ReadonlySet<string> = new Set([
  "UNAVAILABLE",
  "RESOURCE_EXHAUSTED",
  "INTERNAL",
  "DEADLINE_EXCEEDED",
  "ABORTED",
  "CANCELLED",
  "UNKNOWN",
  "DATA_LOSS"
])

const failure = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `Google Cloud KMS: ${what}` })

const changed = failure("unavailable", "the answer is not as it was sent")
const broken = failure("unavailable", "the answer lacks the requested data")
const unsuitable = failure("unsuitable", "the key version is not of algorithm EC_SIGN_SECP256K1_SHA256")
const unusable = failure("refused", "the file of the credentials cannot be used")

const reasonOf = (name: string, status: number): KeyProviderError["reason"] => {
  if (name === "NOT_FOUND" || (status === 404 && name === "")) return "notFound"
  // The requests are well-formed, so the key does not support the algorithm.
  if (name === "INVALID_ARGUMENT") return "unsuitable"
  return passing.has(name) || status === 408 || status === 429 || status >= 500 ? "unavailable" : "refused"
}

/**
 * Error name in a response of the API (`{"error": {"status": "NOT_FOUND"}}`) or of the token endpoint
 * (`{"error": "invalid_grant"}`). Empty when there is no valid name.
 */
const nameOf = (data: unknown): string => {
  const parsed = Result.try((): unknown => (typeof data === "string" ? JSON.parse(data) : data))
  const body = Result.getOrNull(parsed)
  const error = Predicate.isObject(body) ? body.error : undefined
  const name = Predicate.isObject(error) ? error.status : error
  return typeof name === "string" && /^[A-Za-z][A-Za-z_]{0,79}$/.test(name) ? name : ""
}

const isNetworkName = (code: unknown): code is string =>
  typeof code === "string" && /^E[A-Z0-9_]{2,40}$/.test(code)

/**
 * Converts an SDK error. No response, a broken one or a server error is `unavailable`; so are missing credentials, since
 * the metadata server, the SDK's last source, comes and goes.
 */
const fromSdk = (error: unknown): KeyProviderError => {
  const { code, response }: Answered = typeof error === "object" && error !== null ? error : {}
  const status = response?.status
  if (typeof status !== "number" || status < 400)
    return failure("unavailable", isNetworkName(code) ? code : "no answer that could be read")
  const name = nameOf(response?.data)
  return failure(reasonOf(name, status), name === "" ? `HTTP status ${status}` : name)
}

/** Parses a credentials file. The SDK would take unparsable text for a private key, and fail only at the first signature. */
const credentialsIn = (file: string) =>
  Effect.tryPromise({
    try: async (signal): Promise<unknown> => JSON.parse(await readFile(file, { encoding: "utf8", signal })),
    catch: () => unusable
  }).pipe(Effect.filterOrFail(Predicate.isObject, () => unusable))

type Client = KeyManagementServiceClient
type Wrapped = protos.google.protobuf.IInt64Value | null | undefined

/**
 * Finds the credentials once. A workload identity would exchange its token over separate connections, retried and without a
 * time-out, where one hung exchange blocks all calls: it gets the client's transport.
 */
const findCredentials = async (client: Client): Promise<void> => {
  const found: object = await client.auth.getClient()
  if ("transporter" in found && "stsCredential" in found && Predicate.isObject(found.stsCredential))
    Object.assign(found.stsCredential, { transporter: found.transporter })
}

/** Segments contain no slash and no other special characters of URLs. */
const nameShape =
  /^projects\/[^/?#%]+\/locations\/[^/?#%]+\/keyRings\/[\w-]{1,63}\/cryptoKeys\/[\w-]{1,63}\/cryptoKeyVersions\/\d{1,19}$/

/** No retries: the key ring retries. */
const once = { retry: { retryCodes: [] } }

/** Whether the checksum matches the bytes. A missing checksum does not. */
const isIntact = (bytes: Uint8Array, sum: Wrapped): boolean => String(sum?.value) === String(Crc32c.of(bytes))

const pemShape = /^-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=\n]+)\n-----END PUBLIC KEY-----\n?$/

/** The DER in a PEM, accepted only in canonical base64. */
const derOf = (pem: string): Buffer | null => {
  const base64 = pemShape.exec(pem)?.[1]?.replaceAll("\n", "") ?? ""
  const der = Buffer.from(base64, "base64")
  return der.length > 0 && der.toString("base64") === base64 ? der : null
}

const hexOf = (bytes: Uint8Array): Hex.Hex => Hex.unsafe(`0x${Buffer.from(bytes).toString("hex")}`)

const keyOf = (client: Client, name: string): ProviderKey => {
  const call = <A>(send: () => Promise<[A, ...ReadonlyArray<unknown>]>) =>
    nameShape.test(name)
      ? Effect.tryPromise({
          try: async () => {
            await findCredentials(client)
            return (await send())[0]
          },
          catch: fromSdk
        })
      : failure("notFound", "the name is not the full resource name of a key version")

  const sign = Effect.fnUntraced(function* (digest: Hex.Bytes32) {
    const sha256 = Buffer.from(digest.slice(2), "hex")
    const answer = yield* call(() =>
      client.asymmetricSign({ name, digest: { sha256 }, digestCrc32c: { value: Crc32c.of(sha256) } }, once)
    )
    const { signature } = answer
    if (answer.name !== name || !(signature instanceof Uint8Array) || signature.length === 0)
      return yield* broken
    if (answer.verifiedDigestCrc32c !== true || !isIntact(signature, answer.signatureCrc32c))
      return yield* changed
    return yield* Effect.fromResult(Result.mapError(Der.signature(hexOf(signature)), () => broken))
  })

  return {
    type: "KMS",
    maxBatch: 1,
    publicKey: Effect.gen(function* () {
      const answer = yield* call(() => client.getPublicKey({ name }, once))
      if (answer.name !== name || !answer.pem) return yield* broken
      if (!isIntact(Buffer.from(answer.pem), answer.pemCrc32c)) return yield* changed
      if (answer.algorithm !== "EC_SIGN_SECP256K1_SHA256") return yield* unsuitable
      const der = derOf(answer.pem)
      if (der === null) return yield* broken
      return yield* Effect.fromResult(
        Result.mapError(Der.publicKey(hexOf(der)), (problem) =>
          problem === "otherKind" ? unsuitable : broken
        )
      )
    }),
    sign: (digests) => Effect.forEach(digests, sign)
  }
}

/** Provides keys of Google Cloud KMS. The connections live as long as the scope. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<KeyProvider, KeyProviderError, Scope.Scope> {
  const { credentialsFile, endpoint, timeoutMillis = 7_000 } = options
  const credentials = credentialsFile === undefined ? undefined : yield* credentialsIn(credentialsFile)
  const fetchImplementation = yield* Transport.make(timeoutMillis)
  const client = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new KeyManagementServiceClient({
          fallback: true,
          clientOptions: {
            transporterOptions: { fetchImplementation, retryConfig: { shouldRetry: () => false } }
          },
          ...(credentials !== undefined && { credentials }),
          ...(endpoint !== undefined && {
            apiEndpoint: endpoint.host,
            port: endpoint.port,
            protocol: endpoint.protocol
          })
        })
    ),
    (open) => Effect.ignore(Effect.tryPromise(() => open.close()))
  )
  if (credentials !== undefined)
    yield* Effect.tryPromise({ try: () => findCredentials(client), catch: () => unusable })
  return { key: (name) => keyOf(client, name) }
})
