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
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import * as Body from "../../http/message/Body.js"
import type { HttpService } from "../../http/service/HttpService.js"
import * as Connections from "./Connections.js"
import * as RawAnswer from "./RawAnswer.js"

/** Where and how the service listens. Times in milliseconds. */
export interface Options {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** How long requests under way may take once the service stops. Default 25 s. */
  readonly drainMillis?: number
  /** A client must have sent its headers by then. Default 10 s. */
  readonly headersTimeoutMillis?: number
  /** A client must have sent its whole request by then. Default 60 s. */
  readonly requestTimeoutMillis?: number
  /** How long an idle connection is kept. Default 65 s, above what load balancers use. */
  readonly keepAliveTimeoutMillis?: number
  /** How long a client may take to read an answer, and how many more of its bytes each second. Default 60 s and 16 KiB. */
  readonly answerMillis?: number
  readonly answerBytesPerSecond?: number
  /** Most open connections. Default 4,096. */
  readonly maxConnections?: number
  /** Most open connections of one address, `trustedProxies` apart. Default 1,024. */
  readonly maxConnectionsPerAddress?: number
  readonly trustedProxies?: ReadonlyArray<IpAddress.Range>
  /** Most bytes of all headers of a request. Default 16 KiB. */
  readonly maxHeaderBytes?: number
}

/** The address that the service listens at. */
export interface Listening {
  readonly host: string
  readonly port: number
  /** `http://host:port`, without a slash at its end. */
  readonly url: string
}

/** The address can not be listened at; `code` is the system's, for example EADDRINUSE. */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly code: string
  readonly message: string
}> {}

/**
 * Listens over node:http until the scope closes. Closing stops gracefully: no new connections, `front.stop` with the
 * drain time, then every connection is closed.
 */
export const serve = (
  front: HttpService,
  options: Options
): Effect.Effect<Listening, ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const fork = Effect.runForkWith(yield* Effect.context())
    const server = create(options)
    Connections.limit(server, {
      most: options.maxConnections ?? 4_096,
      mostPerAddress: options.maxConnectionsPerAddress ?? 1_024,
      trustedProxies: options.trustedProxies ?? []
    })
    const answers = new Answers()
    // Of requests alone, and never closed: `stop` drains and interrupts them, in its own time and order.
    const scope = yield* Scope.make()
    const handle = yield* NodeHttpServer.makeHandler(front.app, { scope }).pipe(
      // A use case has a span of its own.
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
    // An expectation that nobody knows is ignored, as RFC 9110 allows; left alone, node answers without a body.
    server.on("checkExpectation", onRequest)
    server.on("clientError", RawAnswer.onClientError(answers.bySocket))
    server.on("connect", RawAnswer.onConnect)
    yield* Effect.acquireRelease(listen(server, options), () =>
      stop(front, server, answers, options.drainMillis ?? 25_000)
    )
    // Of a connection that the system could not give, for want of a descriptor perhaps: the next one may do.
    const troubles = Troubles.make()
    const refused = { what: "a connection can not be accepted", place: "", isDelay: true }
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

/** The answers that are owed. */
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

  /** To answers that wait behind another one node does not say that their connection has ended. */
  private abandon(socket: Socket): void {
    for (const response of this.owed)
      if (response.req.socket === socket && response.socket === null) {
        response.destroy()
        response.emit("close")
      }
  }

  /** Nothing comes behind those that are owed. */
  last(): void {
    for (const response of this.owed) if (!response.headersSent) response.setHeader("connection", "close")
  }

  /** Until none is owed. */
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
    maxHeaderSize: options.maxHeaderBytes ?? 16 * 1024,
    noDelay: true,
    // node answers a missing Host without a body.
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

/** Where it came to listen. */
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
    // The answers are made; a client that does not read its own must not keep the process.
    yield* Effect.timeoutOption(answers.all, "1 second")
    server.closeAllConnections()
  })

/** Of a body that is not read to its end nothing behind it on its connection can be understood. */
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
 * Lets go of a client that does not read its answer, which is kept for it. One that waits behind others has its time
 * once it is its turn.
 */
const cutOff = (
  response: http.ServerResponse,
  { answerBytesPerSecond = 16 * 1024, answerMillis = 60_000 }: Options
): void => {
  response.once("prefinish", () => {
    const left = response.socket?.writableLength ?? 0
    // Most answers are with the system by now.
    if (left === 0) return
    const timer = setTimeout(() => response.destroy(), answerMillis + (left / answerBytesPerSecond) * 1_000)
    timer.unref()
    response.once("close", () => clearTimeout(timer))
  })
}
