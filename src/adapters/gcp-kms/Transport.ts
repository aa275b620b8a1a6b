import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Most bytes of an answer: a public key or a signature is a few hundred. */
const largestAnswer = 256 * 1_024

const bodyOf = (body: RequestInit["body"]): string | Uint8Array | undefined =>
  body === null || body === undefined ? undefined : body instanceof Uint8Array ? body : String(body)

const headersOf = (incoming: IncomingMessage): Headers => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers))
    for (const each of value === undefined ? [] : [value].flat()) headers.append(name, each)
  return headers
}

/** Answers of these statuses have no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

const answerOf = (incoming: IncomingMessage, chunks: ReadonlyArray<Uint8Array>): Response => {
  const status = incoming.statusCode ?? 0
  return new Response(bodiless.has(status) ? null : Buffer.concat(chunks), {
    status,
    headers: headersOf(incoming)
  })
}

/**
 * `fetch` for the SDK, over connections that end with the scope: the SDK's own outlive every client. One time limit
 * holds from the start to the last byte; redirects are not followed.
 */
export const make = (timeoutMillis: number): Effect.Effect<typeof fetch, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => ({
        http: new HttpAgent({ keepAlive: true }),
        https: new HttpsAgent({ keepAlive: true })
      })),
      (agents) =>
        Effect.sync(() => {
          agents.http.destroy()
          agents.https.destroy()
        })
    ),
    (agents) => (input, init) =>
      new Promise<Response>((resolve, reject) => {
        const url = new URL(input instanceof Request ? input.url : input)
        const secure = url.protocol === "https:"
        const outgoing = (secure ? httpsRequest : httpRequest)(
          url,
          {
            method: init?.method ?? "GET",
            headers: Object.fromEntries(new Headers(init?.headers)),
            agent: secure ? agents.https : agents.http,
            ...(init?.signal && { signal: init.signal })
          },
          (incoming) => {
            const chunks: Array<Uint8Array> = []
            let size = 0
            incoming.on("error", reject)
            incoming.on("data", (chunk: Uint8Array) => {
              size += chunk.length
              if (size > largestAnswer) outgoing.destroy(new Error("the answer is too large"))
              else chunks.push(chunk)
            })
            incoming.on("end", () => {
              try {
                resolve(answerOf(incoming, chunks))
              } catch (error) {
                reject(error)
              }
            })
          }
        )
        // Signals of AbortSignal.any may be collected before they fire.
        const limit = setTimeout(() => outgoing.destroy(new Error("no answer in time")), timeoutMillis)
        outgoing.on("close", () => clearTimeout(limit))
        outgoing.on("error", reject)
        outgoing.end(bodyOf(init?.body))
      })
  )
