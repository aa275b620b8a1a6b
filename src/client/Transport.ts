import { CastellanError } from "./CastellanError.js"

export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface Options {
  /**
   * Where the service is, with the path under which it is mounted: an http or https URL. Relative ones are for pages, and
   * for a `fetch` of your own that takes them.
   */
  readonly baseUrl: string
  readonly apiKey: string
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
  /** How often a request is sent again, at most. Default 4. */
  readonly retries?: number
  /** Longest wait before one of them, milliseconds; a service that asks for more is not asked again. Default 10,000. */
  readonly longestWaitMillis?: number
}

export interface Exchange {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly idempotencyKey: string | null
  /** Whether it may be sent again when nobody knows what became of it. */
  readonly repeatable: boolean
  readonly signal?: AbortSignal | undefined
}

export interface Answer {
  readonly status: number
  /** What the service calls the request; null where its header does not arrive. */
  readonly requestId: string | null
  readonly body: unknown
}

/** What stands behind the path of a request; what has no value is left out. */
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

/** Half of it for certain, so that many clients do not come back at one moment. */
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

/** Of a page, which relative URLs begin with. */
const pageUrl = (): string | undefined =>
  (globalThis as { readonly location?: { readonly href: string } }).location?.href

/** What no request could be made to: it would be told as a service that does not answer. Nothing of it is repeated. */
const refuse = ({ apiKey, baseUrl, fetch: own }: Options): void => {
  // Programs without types give what the environment lacks.
  if (typeof apiKey !== "string" || apiKey.trim() === "" || !/^[\t\x20-\x7e\x80-\xff]*$/.test(apiKey))
    throw new TypeError("apiKey: expected text that fits a header, and is not empty")
  // Whoever brings a fetch knows what it takes.
  if (own !== undefined) return
  const url = URL.canParse(baseUrl, pageUrl()) ? new URL(baseUrl, pageUrl()) : null
  if (url === null || !/^https?:$/.test(url.protocol) || `${url.username}${url.password}` !== "")
    throw new TypeError("baseUrl: expected an http or https URL, without user name and password")
}

/**
 * Sends a request until it is answered. A 429 and a 503 are sent again whatever they are of: nothing has happened. A
 * lost answer is sent again when that does nothing twice: reads, and writes under the same idempotency key.
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

/** Sends a request, and gives its answer with a body of JSON. */
export const make = (options: Options): ((exchange: Exchange) => Promise<Answer>) => sender(options, whole)

/** Sends a request, and gives its answer as soon as there is one: what is in it is still to come. */
export const opener = (options: Options): ((exchange: Exchange) => Promise<Response>) =>
  sender(options, (response) => Promise.resolve(response))
