import { KeyProviderError } from "../../application/ports/KeyProvider.js"

/** What the SDK hangs on its errors: the answer, or of the network a text that names what went wrong. */
interface Answered {
  readonly message?: unknown
  readonly response?: { readonly statusCode?: unknown; readonly data?: unknown }
}

/** Codes of the API for a vault account or an asset that does not exist. */
const absent: ReadonlySet<number> = new Set([1004, 1006])

export const make = (reason: KeyProviderError["reason"], what: string): KeyProviderError =>
  new KeyProviderError({ reason, message: `Fireblocks: ${what}` })

/** An answer of status 2xx that is not what was asked for. */
export const broken = (what: string): KeyProviderError => make("unavailable", what)

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
export const from = (error: unknown): KeyProviderError => {
  const { message, response }: Answered = typeof error === "object" && error !== null ? error : {}
  const status = statusOf(error)
  if (status === null) {
    const [name] = /\bE[A-Z]{4,20}\b/.exec(String(message)) ?? []
    return make("unavailable", name ?? "no answer that could be read")
  }
  const code = codeOf(response?.data)
  const told = code === null ? `HTTP status ${status}` : `HTTP status ${status}, code ${code}`
  if (status === 404 || (code !== null && absent.has(code))) return make("notFound", told)
  return make(status === 408 || status === 429 || status >= 500 ? "unavailable" : "refused", told)
}
