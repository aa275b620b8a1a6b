import { GetPublicKeyCommand, KMSClient, type KMSClientConfig, SignCommand } from "@aws-sdk/client-kms"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import {
  type KeyProvider,
  KeyProviderError,
  type ProviderKey,
  type RawSignature
} from "../../application/ports/KeyProvider.js"
import * as Der from "../../domain/crypto/Der.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Failure from "./Failure.js"

export interface Credentials {
  readonly accessKeyId: Redacted.Redacted<string>
  readonly secretAccessKey: Redacted.Redacted<string>
  readonly sessionToken?: Redacted.Redacted<string> | undefined
}

/** How AWS KMS is reached. The name of a key is its id, its ARN or an alias (`alias/...`). */
export interface Options {
  readonly region: string
  /** An http or https URL; absent: the region's own. */
  readonly endpoint?: string | undefined
  /** Absent: where the SDK looks by default (environment, shared files, SSO, web identity, container, instance). */
  readonly credentials?: Credentials | undefined
  /** From asking to the last byte of the answer, by default 7,000. */
  readonly timeoutMillis?: number | undefined
}

/** To an open connection, TLS included. */
const connectMillis = 2_000

const configOf = ({ credentials, endpoint, region }: Options, timeoutMillis: number): KMSClientConfig => ({
  region,
  ...(endpoint === undefined ? {} : { endpoint }),
  ...(credentials === undefined
    ? {}
    : {
        credentials: {
          accessKeyId: Redacted.value(credentials.accessKeyId),
          secretAccessKey: Redacted.value(credentials.secretAccessKey),
          ...(credentials.sessionToken === undefined
            ? {}
            : { sessionToken: Redacted.value(credentials.sessionToken) })
        }
      }),
  maxAttempts: 1,
  // Any other mode may ask the instance's metadata server where it runs.
  defaultsMode: "standard",
  requestHandler: {
    connectionTimeout: Math.min(connectMillis, timeoutMillis),
    requestTimeout: timeoutMillis,
    throwOnRequestTimeout: true,
    socketTimeout: timeoutMillis
  }
})

const keyOf = (client: KMSClient, KeyId: string, timeoutMillis: number): ProviderKey => {
  const call = <A>(send: (abortSignal: AbortSignal) => Promise<A>): Effect.Effect<A, KeyProviderError> =>
    Effect.tryPromise({ try: send, catch: Failure.from }).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Effect.fail(Failure.broken("no answer in time"))
      })
    )

  const sign = (digest: Hex.Bytes32): Effect.Effect<RawSignature, KeyProviderError> =>
    Effect.gen(function* () {
      const command = new SignCommand({
        KeyId,
        Message: Buffer.from(digest.slice(2), "hex"),
        MessageType: "DIGEST",
        SigningAlgorithm: "ECDSA_SHA_256"
      })
      const { Signature } = yield* call((abortSignal) => client.send(command, { abortSignal }))
      return yield* Effect.fromResult(
        Result.mapError(Der.signature(hexOf(Signature)), () =>
          Failure.broken("the answer holds no DER signature")
        )
      )
    })

  return {
    type: "KMS",
    maxBatch: 1,
    publicKey: Effect.gen(function* () {
      const command = new GetPublicKeyCommand({ KeyId })
      const answer = yield* call((abortSignal) => client.send(command, { abortSignal }))
      if (answer.KeySpec === undefined) return yield* Failure.broken("the answer names no key spec")
      if (answer.KeySpec !== "ECC_SECG_P256K1" || answer.KeyUsage !== "SIGN_VERIFY")
        return yield* Failure.unsuitable
      return yield* Effect.fromResult(
        Result.mapError(Der.publicKey(hexOf(answer.PublicKey)), (problem) =>
          problem === "otherKind" ? Failure.unsuitable : Failure.broken("the answer holds no DER public key")
        )
      )
    }),
    sign: (digests) => Effect.forEach(digests, sign)
  }
}

const hexOf = (bytes: Uint8Array | undefined): Hex.Hex =>
  Hex.unsafe(`0x${Buffer.from(bytes ?? []).toString("hex")}`)

/** Keys of AWS KMS. The connections live as long as the scope. */
export const make = (options: Options): Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    const { endpoint, timeoutMillis = 7_000 } = options
    if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:\/\//.test(endpoint)))
      return yield* new KeyProviderError({
        reason: "refused",
        message: "AWS KMS: the endpoint is no http or https URL"
      })
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => new KMSClient(configOf(options, timeoutMillis))),
      (open) => Effect.sync(() => open.destroy())
    )
    return { key: (name) => keyOf(client, name, timeoutMillis) }
  })
