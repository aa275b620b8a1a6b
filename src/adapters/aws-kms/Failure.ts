import { KeyProviderError } from "../../application/ports/KeyProvider.js"

/** What the SDK hangs on the errors that AWS answered with. */
interface Answered {
  readonly name?: unknown
  /** Of the network: `ECONNREFUSED`. */
  readonly code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: unknown; readonly clockSkewCorrected?: unknown }
}

/** Errors of status 400 that go away: throttling, trouble behind the key, session tokens that the SDK renews. */
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

/** An ARN or alias that can not be one names no key either. */
const absent: ReadonlySet<string> = new Set(["NotFoundException", "InvalidArnException"])

/** The key exists, and its kind or usage has no such signature. */
const otherKind: ReadonlySet<string> = new Set(["InvalidKeyUsageException", "UnsupportedOperationException"])

/** A name comes from outside: shown when it is one. */
const nameOf = (...names: ReadonlyArray<unknown>): string =>
  names.find((name) => typeof name === "string" && /^[A-Za-z][A-Za-z0-9_]{0,79}$/.test(name))?.toString() ??
  "an error without a name"

/**
 * A failure of the SDK. No answer, a broken one or one of a server in trouble is `unavailable`; so are a clock that the
 * SDK has just corrected, and credentials that it did not find, since the places where it looks come and go.
 */
export const from = (error: unknown): KeyProviderError => {
  const {
    $metadata,
    code,
    name: given
  } = (typeof error === "object" && error !== null ? error : {}) as Answered
  const status = $metadata?.httpStatusCode
  const answered = typeof status === "number" && status >= 400
  const name = answered ? nameOf(given) : nameOf(code, given)
  const answer = (reason: KeyProviderError["reason"]) =>
    new KeyProviderError({ reason, message: `AWS KMS: ${name}` })
  if (!answered) return answer("unavailable")
  if (absent.has(name)) return answer("notFound")
  if (otherKind.has(name)) return answer("unsuitable")
  if (status === 429 || status >= 500 || passing.has(name) || $metadata?.clockSkewCorrected === true)
    return answer("unavailable")
  return answer("refused")
}

/** An answer of status 200 that is not what was asked for. */
export const broken = (what: string): KeyProviderError =>
  new KeyProviderError({ reason: "unavailable", message: `AWS KMS: ${what}` })

export const unsuitable: KeyProviderError = new KeyProviderError({
  reason: "unsuitable",
  message: "AWS KMS: the key is not of spec ECC_SECG_P256K1 and usage SIGN_VERIFY"
})
