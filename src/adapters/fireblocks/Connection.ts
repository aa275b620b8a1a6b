import { createPrivateKey } from "node:crypto"
import { Agent as HttpAgent } from "node:http"
import { Agent as HttpsAgent } from "node:https"
import { BasePath, Fireblocks } from "@fireblocks/ts-sdk"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { KeyProviderError } from "../../application/ports/KeyProvider.js"
import * as Failure from "./Failure.js"

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
      return yield* Failure.make("refused", "the base path is no http or https URL")
    if (!isRsaKey(Redacted.value(secretKey)))
      return yield* Failure.make(
        "refused",
        `the secret key is no RSA private key of ${leastBits} bits in PEM`
      )
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
