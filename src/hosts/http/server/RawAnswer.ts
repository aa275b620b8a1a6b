import type { ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import * as Statuses from "../message/Statuses.js"

/**
 * Responses to malformed requests: broken framing, oversized headers, slow clients. Node's responses have no body; these
 * have the error envelope.
 */

/** Responses in progress, by connection. */
export type InFlight = WeakMap<Duplex, ServerResponse>

const malformed = (message: string): Problem => problem("invalid_request", [{ path: "", message }])

const problems: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: malformed("the headers are too large"),
  // A stalled process may see the time-out before the received bytes. The request has not run, so a retry is safe.
  ERR_HTTP_REQUEST_TIMEOUT: problem(
    "unavailable",
    [{ path: "", message: "the request did not arrive in time" }],
    {
      headers: ErrorEnvelope.retryAfter(1)
    }
  )
}

/** Time to read the response of a broken connection, in ms. */
const linger = 1_000

/**
 * Handles the server's event `clientError`. It writes nothing into a started response, nor before the pending response to
 * an earlier complete request.
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

export const noHost = (response: ServerResponse): void => {
  const { body, headers, status } = ErrorEnvelope.answer(missingHost, globalThis.crypto.randomUUID())
  const length = { "content-length": Buffer.byteLength(body) }
  response.writeHead(status, { ...headers, ...length, connection: "close" }).end(body)
}

/** Handles the server's event `connect`: the service is not a proxy. */
export const onConnect = (_request: unknown, socket: Duplex): void =>
  finish(socket, problem("method_not_allowed", [{ path: "", message: "the service is not a proxy" }]))

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
