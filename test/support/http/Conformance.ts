import type { Exchange } from "./OpenApiDocument.js"

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** Watches exchanges with the service for differences from the OpenAPI document. */
export interface Conformance {
  /** Returns and clears the findings. */
  readonly take: () => ReadonlyArray<string>
  readonly remove: () => void
}

const found: Array<string> = []

/** Checks one exchange with the service against the document. */
export const note = async (exchange: Exchange): Promise<void> => {
  // Few test files call the service, so only they load the contract.
  const { untruths } = await import("./OpenApiDocument.js")
  found.push(...untruths(exchange))
}

/** No stub of this project's tests sends all of these headers. */
const isService = ({ headers }: Response): boolean =>
  /^[0-9a-f-]{36}$/.test(headers.get("x-request-id") ?? "") &&
  headers.get("referrer-policy") === "no-referrer"

const textOf = (body: RequestInit["body"]): string | null => {
  if (body === undefined || body === null) return ""
  if (typeof body === "string") return body
  return body instanceof Uint8Array ? new TextDecoder().decode(body) : null
}

/** Path prefix of the service in examples. */
const mounted = /^\/wallets(?=\/)/

/** Checks every later fetch from the service, request and response, against the document. */
export const install = (voice: { fetch: Fetch }): Conformance => {
  const plain = voice.fetch
  voice.fetch = async (input, init) => {
    const answer = await plain(input, init)
    if (!isService(answer)) return answer
    const url = new URL(input instanceof Request ? input.url : input)
    const text = await answer
      .clone()
      .text()
      .catch(() => null)
    if (text !== null)
      await note({
        method: init?.method ?? (input instanceof Request ? input.method : "GET"),
        target: `${url.pathname.replace(mounted, "")}${url.search}`,
        sent: input instanceof Request ? null : textOf(init?.body),
        status: answer.status,
        headers: answer.headers,
        text
      })
    return answer
  }
  return {
    take: () => found.splice(0),
    remove: () => {
      voice.fetch = plain
    }
  }
}
