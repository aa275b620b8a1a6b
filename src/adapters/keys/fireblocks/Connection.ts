import { createPrivateKey } from "node:crypto"
import { Agent as HttpAgent } from "node:http"
import { Agent as HttpsAgent } from "node:https"
import { BasePath, Fireblocks } from "@fireblocks/ts-sdk"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { KeyProviderError } from "../../../application/ports/KeyProvider.js"

export interface Options {
  /** Id of the API user. */
  readonly apiKey: Redacted.Redacted<string>
  /** The API user's RSA private key, PEM. */
  readonly secretKey: Redacted.Redacted<string>
  /** An http or https URL with its version; absent: https://api.fireblocks.io/v1. */
  readonly basePath?: string | undefined
}

/** Makes one request and aborts it on interruption. Fails with the SDK's error. */
export type Call = <A>(send: (client: Fireblocks) => Promise<A>) => Effect.Effect<A, unknown>

/** Fields that the SDK adds to errors: the response, or for network errors a message. */
interface Answered {
  readonly message?: unknown
  readonly response?: { readonly statusCode?: unknown; readonly data?: unknown }
}

/** API codes for a missing vault account or asset. */
const absent: ReadonlySet<number> = new Set([1004, 1006])

export const failure = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `Fireblocks: ${what}` })

/** A malformed response of status 2xx. */
export const broken = (what: string): KeyProviderError => failure("unavailable", what)

/** HTTP status of an error response; null without a response. */
export const statusOf = (error: unknown): number | null => {
  const { response }: Answered = typeof error === "object" && error !== null ? error : {}
  return typeof response?.statusCode === "number" && response.statusCode >= 300 ? response.statusCode : null
}

const codeOf = (data: unknown): number | null =>
  typeof data === "object" && data !== null && "code" in data && Number.isSafeInteger(data.code)
    ? Number(data.code)
    : null

/** Converts an SDK error; repeats only numbers from Fireblocks. */
export const fromSdk = (error: unknown): KeyProviderError => {
  const { message, response }: Answered = typeof error === "object" && error !== null ? error : {}
  const status = statusOf(error)
  if (status === null) {
    const [name] = /\bE[A-Z]{4,20}\b/.exec(String(message)) ?? []
    return failure("unavailable", name ?? "no answer that could be read")
  }
  const code = codeOf(response?.data)
  const statusText = code === null ? `HTTP status ${status}` : `HTTP status ${status}, code ${code}`
  if (status === 404 || (code !== null && absent.has(code))) return failure("notFound", statusText)
  return failure(status === 408 || status === 429 || status >= 500 ? "unavailable" : "refused", statusText)
}

/** Most bytes of a response: 127 signatures are some 60 KiB. */
const largestAnswer = 1_024 * 1_024

/** Shortest RSA key for RS256, in bits. */
const leastBits = 2_048

const isRsaKey = (pem: string): boolean => {
  try {
    const { asymmetricKeyDetails, asymmetricKeyType } = createPrivateKey(pem)
    return asymmetricKeyType === "rsa" && (asymmetricKeyDetails?.modulusLength ?? 0) >= leastBits
  } catch {
    return false
  }
}

/** Keeps connections alive until the scope ends. Sends nothing yet. */
export const make = ({
  apiKey,
  basePath = BasePath.US,
  secretKey
}: Options): Effect.Effect<Call, KeyProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    if (!(URL.canParse(basePath) && /^https?:\/\//.test(basePath)))
      return yield* failure("refused", "the base path is not an http or https URL")
    if (!isRsaKey(Redacted.value(secretKey)))
      return yield* failure("refused", `the secret key is not an RSA private key of ${leastBits} bits in PEM`)
    const agents = yield* Effect.acquireRelease(
      Effect.sync(() => ({
        httpAgent: new HttpAgent({ keepAlive: true }),
        httpsAgent: new HttpsAgent({ keepAlive: true })
      })),
      ({ httpAgent, httpsAgent }) =>
        Effect.sync(() => {
          httpAgent.destroy()
          httpsAgent.destroy()
        })
    )
    // The SDK takes a signal per client, not per request; a client is merely its options.
    const client = (signal: AbortSignal) =>
      new Fireblocks({
        apiKey: Redacted.value(apiKey),
        secretKey: Redacted.value(secretKey),
        basePath: basePath.replace(/\/+$/, ""),
        additionalOptions: {
          isAnonymousPlatform: true,
          baseOptions: {
            ...agents,
            signal,
            adapter: "http",
            proxy: false,
            maxRedirects: 0,
            maxContentLength: largestAnswer
          }
        }
      })
    return (send) => Effect.tryPromise({ try: (signal) => send(client(signal)), catch: (error) => error })
  })
