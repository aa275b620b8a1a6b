import { CastellanError } from "./CastellanError.js"

export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface Options {
  /**
   * URL of the service, http or https, with the path of its mount. Relative URLs work in pages, and with a custom `fetch`
   * that takes them.
   */
  readonly baseUrl: string
  readonly apiKey: string
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
  /** Most retries of a request. Default 4. */
  readonly retries?: number
  /** Longest wait before a retry, in milliseconds; a longer `retry-after` ends the retries. Default 10,000. */
  readonly longestWaitMillis?: number
}

export interface Exchange {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly idempotencyKey: string | null
  /** Whether to retry when the outcome is unknown. */
  readonly repeatable: boolean
  readonly signal?: AbortSignal | undefined
}

export interface Answer {
  readonly status: number
  /** The service's id of the request; null without its header. */
  readonly requestId: string | null
  readonly body: unknown
}

/** Query string of a request, without undefined values. */
export const queryOf = (query: Readonly<Record<string, string | undefined>>): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const text = new URLSearchParams(given).toString()
  return text === "" ? "" : `?${text}`
}

/** Asks the endpoints under one path. None takes an idempotency key. */
export const under =
  (send: (exchange: Exchange) => Promise<Answer>, root: string) =>
  async <A>(
    method: Exchange["method"],
    path: string,
    body: unknown,
    repeatable: boolean,
    { signal }: CallOptions = {}
  ): Promise<A> =>
    (await send({ method, path: `${root}${path}`, body, idempotencyKey: null, repeatable, signal })).body as A

const parsed = async (response: Response): Promise<unknown> => {
  const text = await response.text()
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Rejects as soon as the signal aborts. */
export const pause = (millis: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort)
      resolve()
    }, millis)
    if (signal?.aborted === true) onAbort()
    else signal?.addEventListener("abort", onAbort, { once: true })
  })

/** Half fixed, half random, so that many clients do not retry at the same moment. */
export const backoff = (attempt: number): number => 250 * 2 ** attempt * (0.5 + Math.random() / 2)

const asked = (response: Response, attempt: number): number => {
  const seconds = Number(response.headers.get("retry-after"))
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : backoff(attempt)
}

const noAnswer = ({ idempotencyKey }: Exchange, cause: unknown): CastellanError =>
  new CastellanError(
    "the service did not answer",
    { code: "no_answer", status: 0, requestId: null, details: [], body: null, idempotencyKey },
    cause
  )

const whole = async (response: Response): Promise<Answer | undefined> => {
  const body = await parsed(response)
  const requestId = response.headers.get("x-request-id")
  return body === undefined ? undefined : { status: response.status, requestId, body }
}

/** URL of the page, the base of relative URLs. */
const pageUrl = (): string | undefined =>
  (globalThis as { readonly location?: { readonly href: string } }).location?.href

/** Rejects unusable options, which would look like an unreachable service. The messages never quote them. */
const refuse = ({ apiKey, baseUrl, fetch: own }: Options): void => {
  // Untyped programs pass missing environment variables.
  if (typeof apiKey !== "string" || apiKey.trim() === "" || !/^[\t\x20-\x7e\x80-\xff]*$/.test(apiKey))
    throw new TypeError("apiKey: expected text that fits a header, and is not empty")
  // A custom fetch decides which URLs it takes.
  if (own !== undefined) return
  const url = URL.canParse(baseUrl, pageUrl()) ? new URL(baseUrl, pageUrl()) : null
  if (url === null || !/^https?:$/.test(url.protocol) || `${url.username}${url.password}` !== "")
    throw new TypeError("baseUrl: expected an http or https URL, without user name and password")
}

/**
 * Sends a request until it is answered. Retries every 429 and 503: those requests had no effect. Retries a lost answer
 * when that repeats no effect: of reads, and of writes under the same idempotency key.
 */
const sender = <A>(options: Options, read: (success: Response) => Promise<A | undefined>) => {
  refuse(options)
  const { apiKey, baseUrl, fetch: own, longestWaitMillis = 10_000, retries = 4 } = options
  const root = baseUrl.replace(/\/+$/, "")
  const send = own ?? globalThis.fetch.bind(globalThis)
  return async (exchange: Exchange): Promise<A> => {
    const { body, headers, idempotencyKey, method, path, repeatable, signal } = exchange
    const init: RequestInit = {
      method,
      redirect: "error",
      headers: {
        "x-api-key": apiKey,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(idempotencyKey !== null && { "idempotency-key": idempotencyKey }),
        ...headers
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal })
    }
    for (let attempt = 0; ; attempt += 1) {
      let wait: number
      try {
        const response = await send(`${root}${path}`, init)
        const success = response.ok ? await read(response) : undefined
        if (success !== undefined) return success
        const answer = response.ok ? undefined : await parsed(response)
        const closed = response.status === 429 || response.status === 503
        const lost = response.ok || response.status === 502 || response.status === 504
        wait = asked(response, attempt)
        if (!(closed || (lost && repeatable)) || attempt >= retries || wait > longestWaitMillis)
          throw CastellanError.of(response.status, answer, idempotencyKey)
      } catch (cause) {
        if (cause instanceof CastellanError || signal?.aborted === true) throw cause
        if (!repeatable || attempt >= retries) throw noAnswer(exchange, cause)
        wait = backoff(attempt)
      }
      await pause(wait, signal)
    }
  }
}

/** Sends a request and returns its answer with the parsed JSON body. */
export const make = (options: Options): ((exchange: Exchange) => Promise<Answer>) => sender(options, whole)

/** Sends a request and returns the response before its body is read. */
export const opener = (options: Options): ((exchange: Exchange) => Promise<Response>) =>
  sender(options, (response) => Promise.resolve(response))
