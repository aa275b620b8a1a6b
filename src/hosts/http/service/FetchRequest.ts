import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Body from "../message/Body.js"
import { type Answer, type Incoming, isWhole } from "../message/HttpMessage.js"

/** How a request of the fetch API is seen by the service. */
export interface Options {
  /** Path and query as the service knows them. */
  readonly target: string
  /** The address at the other end of the connection; null where the host does not tell. */
  readonly remoteAddress: string | null
}

/** Longest time that a body may take, milliseconds: as long as the server of node gives a request. */
const bodyMillis = 60_000

/**
 * The headers, and the word that a body follows: a fetch request may have one of which no header tells, and it must
 * not be overlooked.
 */
const headersOf = (request: Request): Incoming["headers"] => {
  const headers = Object.fromEntries(request.headers)
  const isAnnounced = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined
  return request.body === null || isAnnounced ? headers : { ...headers, "transfer-encoding": "chunked" }
}

const readBody = (request: Request, collector: Body.Collector): Effect.Effect<void, Body.Broken> => {
  const { body } = request
  if (body === null) return Effect.void
  return Effect.acquireUseRelease(
    Effect.try({ try: () => body.getReader(), catch: () => new Body.Broken() }),
    (reader) => {
      const next: Effect.Effect<void, Body.Broken> = Effect.flatMap(
        Effect.tryPromise({ try: () => reader.read(), catch: () => new Body.Broken() }),
        ({ done, value }) => (done || !collector.take(value) ? Effect.void : next)
      )
      return Effect.timeoutOrElse(next, {
        duration: bodyMillis,
        orElse: () => Effect.fail(new Body.Broken())
      })
    },
    // Of a body that was read to its end this changes nothing.
    (reader) => Effect.sync(() => void reader.cancel().catch(() => undefined))
  )
}

/** The request, for the service. */
export const incoming = (request: Request, { remoteAddress, target }: Options): Incoming => ({
  method: request.method.toUpperCase(),
  target,
  headers: headersOf(request),
  remoteAddress,
  readBody: (collector) => readBody(request, collector)
})

/** The service's answer, for the fetch API. */
export const response = (request: Request, { body, headers, status }: Answer): Response => {
  if (!isWhole(body))
    return new Response(request.method === "HEAD" ? null : Stream.toReadableStream(Stream.encodeText(body)), {
      status,
      headers
    })
  if (status === 204) return new Response(null, { status, headers })
  return request.method === "HEAD"
    ? new Response(null, {
        status,
        headers: {
          ...headers,
          "content-length": String(
            typeof body === "string" ? new TextEncoder().encode(body).length : body.byteLength
          )
        }
      })
    : new Response(body, { status, headers })
}
