import type { ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import * as ErrorEnvelope from "../../http/message/ErrorEnvelope.js"
import { type Problem, problem } from "../../http/message/ErrorEnvelope.js"
import * as Statuses from "../../http/message/Statuses.js"

/**
 * Answers to what never becomes a request: broken framing, oversized headers, a client that is too slow. node's own
 * have no body; these have the envelope of all others.
 */

/** The answers under way, by their connection. */
export type InFlight = WeakMap<Duplex, ServerResponse>

const malformed = (message: string): Problem => problem("invalid_request", [{ path: "", message }])

const problems: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: malformed("the headers are too large"),
  // It may be here, unread: a process that was held up sees the time before what has come. A repeat does nothing twice.
  ERR_HTTP_REQUEST_TIMEOUT: problem(
    "unavailable",
    [{ path: "", message: "the request did not arrive in time" }],
    {
      headers: ErrorEnvelope.retryAfter(1)
    }
  )
}

/** How long a broken connection is kept so that its answer can be read, milliseconds. */
const linger = 1_000

/**
 * For the server's event `clientError`. Nothing is written into an answer that has begun, nor in place of the answer
 * to a request that came whole, whatever followed it: that one is awaited.
 */
export const onClientError =
  (inFlight: InFlight) =>
  (error: NodeJS.ErrnoException, socket: Duplex): void => {
    if (socket.writableEnded) return
    const response = inFlight.get(socket)
    const owed = response !== undefined && !response.writableFinished
    if (owed && response.req.complete) return void response.once("close", () => socket.destroy())
    if (!socket.writable || (owed && response.headersSent)) return void socket.destroy()
    finish(socket, problems[error.code ?? ""] ?? malformed("the request is not well-formed HTTP"))
  }

const missingHost = problem("invalid_request", [{ path: "Host", message: "the header is required" }])

/** To a request that says not whom it is for. */
export const noHost = (response: ServerResponse): void => {
  const { body, headers, status } = ErrorEnvelope.answer(missingHost, globalThis.crypto.randomUUID())
  const length = { "content-length": Buffer.byteLength(body) }
  response.writeHead(status, { ...headers, ...length, connection: "close" }).end(body)
}

/** For the server's event `connect`: the service is no proxy. */
export const onConnect = (_request: unknown, socket: Duplex): void =>
  finish(socket, problem("method_not_allowed", [{ path: "", message: "the service is no proxy" }]))

const finish = (socket: Duplex, refusal: Problem): void => {
  const { body, headers, status } = ErrorEnvelope.answer(refusal, globalThis.crypto.randomUUID())
  const lines = Object.entries({
    ...headers,
    "content-length": String(Buffer.byteLength(body)),
    connection: "close"
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.on("error", () => {})
  socket.end(`HTTP/1.1 ${status} ${Statuses.names[status]}\r\n${lines.join("")}\r\n${body}`)
  setTimeout(() => socket.destroy(), linger).unref()
}
