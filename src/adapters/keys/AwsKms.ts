import { GetPublicKeyCommand, KMSClient, type KMSClientConfig, SignCommand } from "@aws-sdk/client-kms"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { type KeyProvider, KeyProviderError, type ProviderKey } from "../../application/ports/KeyProvider.js"
import * as Der from "../../domain/crypto/Der.js"
import * as Hex from "../../domain/primitives/Hex.js"

/** Credentials other than those of the SDK's own chain. */
export interface Credentials {
  readonly accessKeyId: Redacted.Redacted<string>
  readonly secretAccessKey: Redacted.Redacted<string>
  readonly sessionToken?: Redacted.Redacted<string> | undefined
}

/** Connection to AWS KMS. A key's name is its id, its ARN or an alias (`alias/...`). */
export interface Options {
  readonly region: string
  /** An http or https URL; absent: the region's endpoint. */
  readonly endpoint?: string | undefined
  /** Absent: the SDK's default chain (environment, shared files, SSO, web identity, container, instance). */
  readonly credentials?: Credentials | undefined
  /** Time-out from the request to the last response byte, in ms. Default 7,000. */
  readonly timeoutMillis?: number | undefined
}

/** Fields that the SDK adds to errors from AWS. */
interface Answered {
  readonly name?: unknown
  /** Network code, for example `ECONNREFUSED`. */
  readonly code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: unknown; readonly clockSkewCorrected?: unknown }
}

/** Transient errors of status 400: throttling, trouble behind the key, session tokens that the SDK renews. */
const passing: ReadonlySet<string> = new Set([
  "ThrottlingException",
  "Throttling",
  "TooManyRequestsException",
  "RequestLimitExceeded",
  "DependencyTimeoutException",
  "KeyUnavailableException",
  "KMSInternalException",
  "ExpiredTokenException",
  "RequestTimeout"
])

/** An invalid ARN or alias names no key either. */
const absent: ReadonlySet<string> = new Set(["NotFoundException", "InvalidArnException"])

/** The key's kind or usage does not support the signature. */
const otherKind: ReadonlySet<string> = new Set(["InvalidKeyUsageException", "UnsupportedOperationException"])

const failure = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `AWS KMS: ${what}` })

/** A malformed response of status 200. */
const broken = (what: string): KeyProviderError => failure("unavailable", what)

const unsuitable = failure("unsuitable", "the key is not of spec ECC_SECG_P256K1 and usage SIGN_VERIFY")

/** Shows an external name only in the shape of a name. */
const nameOf = (...names: ReadonlyArray<unknown>): string =>
  names.find((name) => typeof name === "string" && /^[A-Za-z][A-Za-z0-9_]{0,79}$/.test(name))?.toString() ??
  "an error without a name"

/**
 * Converts an SDK error. No response, a broken one or a server error is `unavailable`. So are a clock that the SDK has just
 * corrected, and missing credentials, since their sources come and go.
 */
const fromSdk = (error: unknown): KeyProviderError => {
  const { $metadata, code, name: given }: Answered = typeof error === "object" && error !== null ? error : {}
  const status = $metadata?.httpStatusCode
  if (typeof status !== "number" || status < 400) return failure("unavailable", nameOf(code, given))
  const name = nameOf(given)
  if (absent.has(name)) return failure("notFound", name)
  if (otherKind.has(name)) return failure("unsuitable", name)
  const mayPass =
    status === 429 || status >= 500 || passing.has(name) || $metadata?.clockSkewCorrected === true
  return failure(mayPass ? "unavailable" : "refused", name)
}

/** Time-out of opening a connection, including TLS, in ms. */
const connectMillis = 2_000

const configOf = ({ credentials, endpoint, region }: Options, timeoutMillis: number): KMSClientConfig => ({
  region,
  ...(endpoint !== undefined && { endpoint }),
  ...(credentials !== undefined && {
    credentials: {
      accessKeyId: Redacted.value(credentials.accessKeyId),
      secretAccessKey: Redacted.value(credentials.secretAccessKey),
      ...(credentials.sessionToken !== undefined && {
        sessionToken: Redacted.value(credentials.sessionToken)
      })
    }
  }),
  maxAttempts: 1,
  // Other modes may query the instance's metadata server for the region.
  defaultsMode: "standard",
  requestHandler: {
    connectionTimeout: Math.min(connectMillis, timeoutMillis),
    requestTimeout: timeoutMillis,
    throwOnRequestTimeout: true,
    socketTimeout: timeoutMillis
  }
})

const hexOf = (bytes: Uint8Array | undefined): Hex.Hex =>
  Hex.unsafe(`0x${Buffer.from(bytes ?? []).toString("hex")}`)

const keyOf = (client: KMSClient, KeyId: string, timeoutMillis: number): ProviderKey => {
  const call = <A>(send: (abortSignal: AbortSignal) => Promise<A>): Effect.Effect<A, KeyProviderError> =>
    Effect.tryPromise({ try: send, catch: fromSdk }).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Effect.fail(broken("no answer in time"))
      })
    )

  const sign = Effect.fnUntraced(function* (digest: Hex.Bytes32) {
    const command = new SignCommand({
      KeyId,
      Message: Buffer.from(digest.slice(2), "hex"),
      MessageType: "DIGEST",
      SigningAlgorithm: "ECDSA_SHA_256"
    })
    const { Signature } = yield* call((abortSignal) => client.send(command, { abortSignal }))
    return yield* Effect.fromResult(
      Result.mapError(Der.signature(hexOf(Signature)), () => broken("the answer holds no DER signature"))
    )
  })

  return {
    type: "KMS",
    maxBatch: 1,
    publicKey: Effect.gen(function* () {
      const command = new GetPublicKeyCommand({ KeyId })
      const answer = yield* call((abortSignal) => client.send(command, { abortSignal }))
      if (answer.KeySpec === undefined) return yield* broken("the answer names no key spec")
      if (answer.KeySpec !== "ECC_SECG_P256K1" || answer.KeyUsage !== "SIGN_VERIFY") return yield* unsuitable
      return yield* Effect.fromResult(
        Result.mapError(Der.publicKey(hexOf(answer.PublicKey)), (problem) =>
          problem === "otherKind" ? unsuitable : broken("the answer holds no DER public key")
        )
      )
    }),
    sign: (digests) => Effect.forEach(digests, sign)
  }
}

/** Provides keys of AWS KMS. The connections live as long as the scope. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<KeyProvider, KeyProviderError, Scope.Scope> {
  const { endpoint, timeoutMillis = 7_000 } = options
  if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:\/\//.test(endpoint)))
    return yield* failure("refused", "the endpoint is not an http or https URL")
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new KMSClient(configOf(options, timeoutMillis))),
    (open) => Effect.sync(() => open.destroy())
  )
  return { key: (name) => keyOf(client, name, timeoutMillis) }
})
