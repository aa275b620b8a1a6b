import { KeyProviderError } from "../../application/ports/KeyProvider.js"

/** What the SDK's transport hangs on its errors: the answer, its body as text or as what JSON it was. */
interface Answered {
  /** Of the network: `ECONNREFUSED`. */
  readonly code?: unknown
  readonly response?: { readonly status?: unknown; readonly data?: unknown }
}

/** Canonical codes of Google's APIs that go away by themselves. */
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

const reasonOf = (name: string, status: number): KeyProviderError["reason"] => {
  if (name === "NOT_FOUND" || (status === 404 && name === "")) return "notFound"
  // The requests are well-formed: what does not fit is the algorithm of the key.
  if (name === "INVALID_ARGUMENT") return "unsuitable"
  return passing.has(name) || status === 408 || status === 429 || status >= 500 ? "unavailable" : "refused"
}

const parsed = (data: unknown): unknown => {
  if (typeof data !== "string") return data
  try {
    return JSON.parse(data)
  } catch {
    return null
  }
}

/**
 * The name that an answer gives its error: of the API (`{"error": {"status": "NOT_FOUND"}}`) or of the place that gives
 * out tokens (`{"error": "invalid_grant"}`). Empty where it gives none, or what is no name.
 */
const nameOf = (data: unknown): string => {
  const body = parsed(data)
  const error = typeof body === "object" && body !== null && "error" in body ? body.error : undefined
  const name = typeof error === "object" && error !== null && "status" in error ? error.status : error
  return typeof name === "string" && /^[A-Za-z][A-Za-z_]{0,79}$/.test(name) ? name : ""
}

const networkName = (code: unknown): string | undefined =>
  typeof code === "string" && /^E[A-Z0-9_]{2,40}$/.test(code) ? code : undefined

export const make = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `Google Cloud KMS: ${what}` })

/**
 * A failure of the SDK. No answer, a broken one or one of a service in trouble is `unavailable`; so are credentials that
 * the SDK did not find, since the metadata server that it asks last comes and goes.
 */
export const from = (error: unknown): KeyProviderError => {
  const { code, response }: Answered = typeof error === "object" && error !== null ? error : {}
  const status = response?.status
  if (typeof status !== "number" || status < 400)
    return make("unavailable", networkName(code) ?? "no answer that could be read")
  const name = nameOf(response?.data)
  return make(reasonOf(name, status), name === "" ? `HTTP status ${status}` : name)
}
