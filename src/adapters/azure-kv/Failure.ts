import { KeyProviderError } from "../../application/ports/KeyProvider.js"

/** What the SDKs of the vault and of the identities hang on their errors. */
interface Told {
  readonly name?: unknown
  readonly code?: unknown
  readonly statusCode?: unknown
  readonly details?: { readonly error?: { readonly innerError?: { readonly code?: unknown } } }
  readonly errorResponse?: { readonly error?: unknown }
}

/** What an authority answers to an application that it will give no token (RFC 6749, 5.2). */
const denials: ReadonlySet<string> = new Set([
  "access_denied",
  "invalid_client",
  "invalid_grant",
  "invalid_request",
  "invalid_scope",
  "unauthorized_client",
  "unsupported_grant_type"
])

/** The authority's answer, which the SDK keeps nowhere but at the beginning of its message. */
const denialOf = (error: Error): string | undefined => {
  const name = error.name === "AuthenticationRequiredError" ? error.message.split(":", 1)[0] : undefined
  return name !== undefined && denials.has(name) ? name : undefined
}

/** A name comes from outside: shown when it is one. */
const named = (name: unknown): string | undefined =>
  typeof name === "string" && /^[A-Za-z][A-Za-z0-9_]{0,79}$/.test(name) ? name : undefined

/** `Forbidden (KeyDisabled)`, `invalid_client`: what kind of error it is, and of which it is a case. */
const nameOf = ({ code, details, errorResponse, statusCode }: Told): string => {
  const kind = named(errorResponse?.error) ?? named(code)
  const inner = named(details?.error?.innerError?.code)
  if (kind === undefined) return `HTTP status ${statusCode}`
  return inner === undefined || inner === kind ? kind : `${kind} (${inner})`
}

const reasonOf = (status: number, code: unknown): KeyProviderError["reason"] => {
  if (status === 404) return "notFound"
  // The requests are well-formed: what does not fit is the algorithm to the key.
  if (status === 400 && code === "BadParameter") return "unsuitable"
  return status === 408 || status === 429 || status >= 500 ? "unavailable" : "refused"
}

export const make = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `Azure Key Vault: ${what}` })

/**
 * A failure of the SDKs. No answer, a broken one or one of a service in trouble is `unavailable`; so are credentials
 * that were not found, since the places where they are looked for come and go. What the SDK itself refuses is a plain
 * Error: a key before its time, past it or without the operation, or a challenge that names another vault.
 */
export const from = (error: unknown): KeyProviderError => {
  const told: Told = typeof error === "object" && error !== null ? error : {}
  const status = told.statusCode
  if (typeof status === "number" && status >= 400) return make(reasonOf(status, told.code), nameOf(told))
  const denial = error instanceof Error ? denialOf(error) : undefined
  if (denial !== undefined) return make("refused", denial)
  if (error instanceof Error && error.name === "Error")
    return make("refused", "the key may not sign now, or the vault's challenge is for another service")
  return make("unavailable", named(told.code) ?? named(told.name) ?? "no answer that could be read")
}
