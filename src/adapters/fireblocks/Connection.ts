import { createPrivateKey } from "node:crypto"
import { Agent as HttpAgent } from "node:http"
import { Agent as HttpsAgent } from "node:https"
import { BasePath, Fireblocks } from "@fireblocks/ts-sdk"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { KeyProviderError } from "../../application/ports/KeyProvider.js"

export interface Options {
  /** Id of the API user. */
  readonly apiKey: Redacted.Redacted<string>
  /** The API user's RSA private key, PEM. */
  readonly secretKey: Redacted.Redacted<string>
  /** An http or https URL with its version; absent: https://api.fireblocks.io/v1. */
  readonly basePath?: string | undefined
}

/** Makes one request, given up when its fiber is interrupted. The error is the SDK's own. */
export type Call = <A>(send: (client: Fireblocks) => Promise<A>) => Effect.Effect<A, unknown>

/** What the SDK hangs on its errors: the answer, or of the network a text that names what went wrong. */
interface Answered {
  readonly message?: unknown
  readonly response?: { readonly statusCode?: unknown; readonly data?: unknown }
}

/** Codes of the API for a vault account or an asset that does not exist. */
const absent: ReadonlySet<number> = new Set([1004, 1006])

export const failure = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `Fireblocks: ${what}` })

/** An answer of status 2xx that is not what was asked for. */
export const broken = (what: string): KeyProviderError => failure("unavailable", what)

/** The HTTP status of an error that was answered; null when nothing was. */
export const statusOf = (error: unknown): number | null => {
  const { response }: Answered = typeof error === "object" && error !== null ? error : {}
  return typeof response?.statusCode === "number" && response.statusCode >= 300 ? response.statusCode : null
}

const codeOf = (data: unknown): number | null =>
  typeof data === "object" && data !== null && "code" in data && Number.isSafeInteger(data.code)
    ? Number(data.code)
    : null

/** A failure of the SDK. Of what Fireblocks wrote only the numbers are repeated. */
export const fromSdk = (error: unknown): KeyProviderError => {
  const { message, response }: Answered = typeof error === "object" && error !== null ? error : {}
  const status = statusOf(error)
  if (status === null) {
    const [name] = /\bE[A-Z]{4,20}\b/.exec(String(message)) ?? []
    return failure("unavailable", name ?? "no answer that could be read")
  }
  const code = codeOf(response?.data)
  const told = code === null ? `HTTP status ${status}` : `HTTP status ${status}, code ${code}`
  if (status === 404 || (code !== null && absent.has(code))) return failure("notFound", told)
  return failure(status === 408 || status === 429 || status >= 500 ? "unavailable" : "refused", told)
}

/** Most bytes of an answer: 127 signatures are some 60 KiB. */
const largestAnswer = 1_024 * 1_024

/** Least bits that RS256 may have. */
const leastBits = 2_048

const isRsaKey = (pem: string): boolean => {
  try {
    const { asymmetricKeyDetails, asymmetricKeyType } = createPrivateKey(pem)
    return asymmetricKeyType === "rsa" && (asymmetricKeyDetails?.modulusLength ?? 0) >= leastBits
  } catch {
    return false
  }
}

/** Connections that are kept between requests and end with the scope. Nothing is sent yet. */
export const make = ({
  apiKey,
  basePath = BasePath.US,
  secretKey
}: Options): Effect.Effect<Call, KeyProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    if (!(URL.canParse(basePath) && /^https?:\/\//.test(basePath)))
      return yield* failure("refused", "the base path is no http or https URL")
    if (!isRsaKey(Redacted.value(secretKey)))
      return yield* failure("refused", `the secret key is no RSA private key of ${leastBits} bits in PEM`)
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
    // The SDK takes a signal per client, not per request; a client is no more than its options.
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
