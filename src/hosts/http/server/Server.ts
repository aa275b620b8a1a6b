import * as http from "node:http"
import type { Socket } from "node:net"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import * as Troubles from "../../../application/observe/Troubles.js"
import * as IpAddress from "../../../domain/net/IpAddress.js"
import * as ClientAddress from "../limits/ClientAddress.js"
import * as Body from "../message/Body.js"
import type { HttpService } from "../service/HttpService.js"
import * as RawAnswer from "./RawAnswer.js"

/** Serves HTTP on node:http: limits connections, reads bodies, and drains requests at the end. */

/** Address and limits of the server. Times in milliseconds. */
export interface Options {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Time for requests in flight once the service stops. Default 25 s. */
  readonly drainMillis?: number
  /** Time-out for the request headers. Default 10 s. */
  readonly headersTimeoutMillis?: number
  /** Time-out for the whole request. Default 60 s. */
  readonly requestTimeoutMillis?: number
  /** Time-out of an idle connection. Default 65 s, above the usual one of load balancers. */
  readonly keepAliveTimeoutMillis?: number
  /** Time for a client to read a response, plus its length at a minimum rate. Default 60 s and 16 KiB a second. */
  readonly answerMillis?: number
  readonly answerBytesPerSecond?: number
  /** Most open connections. Default 4,096. */
  readonly maxConnections?: number
  /** Most open connections per address, excluding `trustedProxies`. Default 1,024. */
  readonly maxConnectionsPerAddress?: number
  readonly trustedProxies?: ReadonlyArray<IpAddress.Range>
}

export interface Listening {
  readonly host: string
  readonly port: number
  /** `http://host:port`, without a trailing slash. */
  readonly url: string
}

/** The server cannot listen at the address; `code` is the system's, for example EADDRINUSE. */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly code: string
  readonly message: string
}> {}

interface ConnectionLimits {
  readonly most: number
  /** Most open connections per address (IPv6: per /64). */
  readonly mostPerAddress: number
  /** Proxies carry many clients' connections and count only for `most`. */
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
}

/** Limits a server's connections. An excess connection is closed without a response: it has sent no request yet. */
const limitConnections = (
  server: http.Server,
  { most, mostPerAddress, trustedProxies }: ConnectionLimits
): void => {
  const open = new Map<string, number>()
  server.maxConnections = most
  server.on("connection", (socket: Socket) => {
    const address = ClientAddress.parse(socket.remoteAddress ?? null)
    if (address === undefined || trustedProxies.some((range) => IpAddress.contains(range, address))) return
    const client = ClientAddress.name(address)
    const count = open.get(client) ?? 0
    if (count >= mostPerAddress) return void socket.destroy()
    open.set(client, count + 1)
    socket.once("close", () => {
      const left = (open.get(client) ?? 1) - 1
      if (left === 0) open.delete(client)
      else open.set(client, left)
    })
  })
}

/**
 * Listens with node:http until the scope closes. It then stops gracefully: no new connections, `front.stop` with the drain
 * time, then closes every connection.
 */
export const serve = (
  front: HttpService,
  options: Options
): Effect.Effect<Listening, ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const fork = Effect.runForkWith(yield* Effect.context())
    const server = create(options)
    limitConnections(server, {
      most: options.maxConnections ?? 4_096,
      mostPerAddress: options.maxConnectionsPerAddress ?? 1_024,
      trustedProxies: options.trustedProxies ?? []
    })
    const answers = new Answers()
    // Scope of the requests; never closed, since `stop` drains and interrupts them.
    const scope = yield* Scope.make()
    const handle = yield* NodeHttpServer.makeHandler(front.app, { scope }).pipe(
      // Use cases create the spans.
      Effect.provideService(HttpMiddleware.TracerDisabledWhen, () => true),
      Effect.provideService(Body.Reader, ({ source }, limits) =>
        readBody(source as http.IncomingMessage, limits, answers)
      )
    )
    const onRequest = (request: http.IncomingMessage, response: http.ServerResponse): void => {
      answers.begin(response)
      if (!server.listening) response.setHeader("connection", "close")
      cutOff(response, options)
      if (request.headers.host === undefined && request.httpVersion === "1.1") RawAnswer.noHost(response)
      else handle(request, response)
    }
    server.on("request", onRequest)
    // RFC 9110 allows ignoring an unknown expectation; by default node responds without a body.
    server.on("checkExpectation", onRequest)
    server.on("clientError", RawAnswer.onClientError(answers.bySocket))
    server.on("connect", RawAnswer.onConnect)
    yield* Effect.acquireRelease(listen(server, options), () =>
      stop(front, server, answers, options.drainMillis ?? 25_000)
    )
    // The system could not accept a connection, for example for want of a descriptor; the next one may succeed.
    const troubles = Troubles.make()
    const refused = { what: "connection not accepted", place: "", isDelay: true }
    let isRefusing = false
    server.on("error", ({ code = "UNKNOWN" }: NodeJS.ErrnoException) => {
      isRefusing = true
      fork(Effect.annotateLogs(troubles.failed(refused, Cause.fail(code)), { code }))
    })
    server.on("connection", () => {
      if (isRefusing) fork(troubles.passed(refused))
      isRefusing = false
    })
    return listening(server, options)
  })

class Answers {
  readonly bySocket: RawAnswer.InFlight = new WeakMap()
  private readonly owed = new Set<http.ServerResponse>()
  private readonly settled = Latch.makeUnsafe(true)
  private readonly watched = new WeakSet<Socket>()

  begin(response: http.ServerResponse): void {
    const { socket } = response.req
    if (response.socket !== null) this.bySocket.set(socket, response)
    if (!this.watched.has(socket)) {
      this.watched.add(socket)
      socket.once("close", () => this.abandon(socket))
    }
    this.owed.add(response)
    this.settled.closeUnsafe()
    response.once("close", () => {
      this.owed.delete(response)
      if (this.owed.size === 0) this.settled.openUnsafe()
    })
  }

  /** Node does not close a response queued behind another one when its connection ends. */
  private abandon(socket: Socket): void {
    for (const response of this.owed)
      if (response.req.socket === socket && response.socket === null) {
        response.destroy()
        response.emit("close")
      }
  }

  /** Closes the connections after their current responses. */
  last(): void {
    for (const response of this.owed) if (!response.headersSent) response.setHeader("connection", "close")
  }

  get all(): Effect.Effect<void> {
    return Effect.interruptible(this.settled.await)
  }
}

const create = (options: Options): http.Server => {
  const headersTimeout = options.headersTimeoutMillis ?? 10_000
  return http.createServer({
    headersTimeout,
    requestTimeout: options.requestTimeoutMillis ?? 60_000,
    connectionsCheckingInterval: Math.min(headersTimeout, 10_000) / 2,
    keepAliveTimeout: options.keepAliveTimeoutMillis ?? 65_000,
    maxHeaderSize: 16 * 1_024,
    noDelay: true,
    // Node responds to a missing Host without a body.
    requireHostHeader: false
  })
}

const listen = (server: http.Server, { host, port }: Options): Effect.Effect<void, ListenError> =>
  Effect.callback((resume) => {
    const onError = ({ code = "UNKNOWN", message }: NodeJS.ErrnoException) =>
      resume(Effect.fail(new ListenError({ code, message: `cannot listen at ${host}:${port}: ${message}` })))
    server.once("error", onError)
    server.listen({ host, port }, () => {
      server.off("error", onError)
      resume(Effect.void)
    })
  })

export const listening = (server: http.Server, { host, port }: Pick<Options, "host" | "port">): Listening => {
  const address = server.address()
  const bound = typeof address === "object" && address !== null ? address.port : port
  return { host, port: bound, url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}` }
}

const stop = (
  front: HttpService,
  server: http.Server,
  answers: Answers,
  drainMillis: number
): Effect.Effect<void> =>
  Effect.gen(function* () {
    server.close()
    answers.last()
    yield* front.stop(drainMillis)
    // The responses are complete; a client that does not read its own must not keep the process.
    yield* Effect.timeoutOption(answers.all, "1 second")
    server.closeAllConnections()
  })

/** Closes the connection after a partly read body: its next request cannot be parsed. */
const readBody = (
  request: http.IncomingMessage,
  { drainBytes, maxBytes }: Body.Limits,
  { bySocket }: Answers
): Effect.Effect<Uint8Array | null, Body.Broken> =>
  Effect.callback((resume) => {
    let chunks: Array<Buffer> = []
    let size = 0
    const end = (result: Effect.Effect<Uint8Array | null, Body.Broken>) => {
      request.off("data", onData).off("end", onEnd).off("close", onClose).pause()
      resume(result)
    }
    const onEnd = () => {
      const [first, ...more] = chunks
      const whole = first !== undefined && more.length === 0 ? first : Buffer.concat(chunks)
      end(Effect.succeed(size > maxBytes ? null : whole))
    }
    const onClose = () => end(Effect.fail(new Body.Broken()))
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBytes) chunks.push(chunk)
      else chunks = []
      if (size <= drainBytes) return
      bySocket.get(request.socket)?.setHeader("connection", "close")
      onEnd()
    }
    if (request.destroyed) return onClose()
    request
      .on("data", onData)
      .on("end", onEnd)
      .on("close", onClose)
      .on("error", () => {})
  })

/**
 * Drops a client that does not read its response, which occupies memory. A response queued behind others gets its time when
 * its turn comes.
 */
const cutOff = (
  response: http.ServerResponse,
  { answerBytesPerSecond = 16 * 1024, answerMillis = 60_000 }: Options
): void => {
  response.once("prefinish", () => {
    const left = response.socket?.writableLength ?? 0
    // Most responses have reached the system's buffers already.
    if (left === 0) return
    const timer = setTimeout(() => response.destroy(), answerMillis + (left / answerBytesPerSecond) * 1_000)
    timer.unref()
    response.once("close", () => clearTimeout(timer))
  })
}
