import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Dispatcher } from "undici"
import Agent from "undici/lib/dispatcher/agent.js"
import * as Json from "../../../domain/json/Json.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as Egress from "./Egress.js"

/**
 * Posts JSON to nodes, services and webhooks, within limits of time, size and connections.
 *
 * Gotchas: only names in URLs of callers resolve through `Egress`. An error shows no address and no header bytes.
 */

export interface Limits {
  /** To open a connection, including TLS. */
  readonly connectMillis: number
  /** From an open connection to the response headers, for methods that nodes answer immediately. */
  readonly firstByteMillis: number
  /** From the start to the last response byte, including the wait for a free connection. */
  readonly totalMillis: number
  readonly responseBytes: number
  /** JSON values in a response, members and elements: parsing time grows with them. */
  readonly responseValues: number
  /** Lower limits for nodes that callers name. */
  readonly callerResponseBytes: number
  readonly callerResponseValues: number
  /** Per host, for one account or the operator. */
  readonly connectionsPerHost: number
  /** Accounts whose idle connections are kept; the least recently used account's are closed first. */
  readonly accounts: number
}

/**
 * No response, or an unreadable one.
 *
 * - `forbidden`: the name resolves to an address that callers may not reach
 * - `unreachable`: no connection, no response in time, or the connection was cut
 * - `garbled`: the response is not HTTP, is compressed, or is not UTF-8
 * - `oversized`: the response is too large
 */
export class HttpFailure extends Data.TaggedError("HttpFailure")<{
  readonly reason: "forbidden" | "unreachable" | "garbled" | "oversized"
  readonly message: string
  /** A retry may help: the connection was refused or cut. */
  readonly passing: boolean
}> {}

export interface Answer {
  readonly status: number
  /** The raw Retry-After header. */
  readonly retryAfter: string | undefined
  readonly body: string
}

/** Sends one POST with a JSON body. `patient`: the response may take all of the total time to begin. */
export interface Http {
  readonly post: (
    target: Egress.Target,
    body: string,
    patient: boolean,
    more?: Readonly<Record<string, string>>
  ) => Effect.Effect<Answer, HttpFailure>
}

const failure = (reason: HttpFailure["reason"], message: string, passing = false) =>
  new HttpFailure({ reason, message, passing })

const passingCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH"
])

/** The response ended early. Only the message shows it for a chunked response on a closing connection. */
const isCut = ({ message }: Error, code: string): boolean =>
  code === "UND_ERR_SOCKET" || code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" || message.includes("EOF state")

/** Hides the messages of the causes: they contain addresses and header bytes. */
const fromError = (
  error: unknown,
  limits: Pick<Limits, "connectMillis" | "firstByteMillis">
): HttpFailure => {
  if (error instanceof Egress.Blocked) return failure("forbidden", "the address is not allowed")
  if (!(error instanceof Error)) return failure("unreachable", "the connection failed")
  const code = "code" in error ? String(error.code ?? "") : ""
  if (code === "UND_ERR_CONNECT_TIMEOUT")
    return failure("unreachable", `no connection within ${limits.connectMillis} ms`)
  if (code === "UND_ERR_HEADERS_TIMEOUT")
    return failure("unreachable", `no answer within ${limits.firstByteMillis} ms`)
  if (isCut(error, code)) return failure("unreachable", "the answer was cut off", true)
  if (error.name === "HTTPParserError" || code === "UND_ERR_HEADERS_OVERFLOW")
    return failure("garbled", "the answer is not HTTP")
  if (code === "" && error instanceof AggregateError) return fromError(error.errors[0], limits)
  return failure(
    "unreachable",
    code === "" ? "the connection failed" : `the connection failed (${code})`,
    passingCodes.has(code)
  )
}

type Done = (answer: Effect.Effect<Answer, HttpFailure>) => void

/** Aborts a connection after its caller has left; never shown. */
const unwanted = new Error("the answer is not wanted")

/** Receives one response. `done` is called exactly once. */
class Receiver implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined
  private over = false
  private readonly utf8 = new TextDecoder("utf-8", { fatal: true })
  private status = 0
  private retryAfter: string | undefined
  private size = 0
  private body = ""

  constructor(
    private readonly limits: Limits,
    private readonly done: Done
  ) {}

  /** Stops the request; a request that still waits for a connection is never sent. */
  abandon(): void {
    this.over = true
    this.controller?.abort(unwanted)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.over) controller.abort(unwanted)
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  ): void {
    this.status = status
    this.retryAfter = [headers["retry-after"]].flat()[0]
    if ((headers["content-encoding"] ?? "identity") !== "identity")
      this.refuse(failure("garbled", "the answer is compressed, which was not asked for"))
    else if (Number(headers["content-length"] ?? 0) > this.limits.responseBytes) this.refuse(this.tooLarge())
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.over) return
    this.size += chunk.length
    if (this.size > this.limits.responseBytes) this.refuse(this.tooLarge())
    else this.decode(chunk)
  }

  onResponseEnd(): void {
    if (!this.decode()) return
    const { body, retryAfter, status } = this
    if (Json.holdsMore(body, this.limits.responseValues)) this.refuse(this.tooMany())
    else this.done(Effect.succeed({ status, retryAfter, body }))
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (!this.over) this.done(Effect.fail(fromError(error, this.limits)))
  }

  private refuse(why: HttpFailure): void {
    this.done(Effect.fail(why))
    this.abandon()
  }

  private decode(chunk?: Buffer): boolean {
    try {
      this.body += chunk === undefined ? this.utf8.decode() : this.utf8.decode(chunk, { stream: true })
      return true
    } catch {
      this.refuse(failure("garbled", "the answer is not UTF-8"))
      return false
    }
  }

  private tooLarge(): HttpFailure {
    return failure("oversized", `the answer is larger than ${this.limits.responseBytes} bytes`)
  }

  private tooMany(): HttpFailure {
    const { responseBytes, responseValues } = this.limits
    return failure(
      "oversized",
      `the answer is too large: it is larger than ${responseBytes} bytes, or holds more than ${responseValues} JSON values`
    )
  }
}

/** Below the usual idle time-out of servers, so that a request seldom meets a closing connection. */
const idleMillis = 4_000

const headers = {
  "content-type": "application/json",
  accept: "application/json",
  "user-agent": "castellan"
}

/**
 * Keeps connections alive, separately for each account and for the operator. Redirects are not followed, and no environment
 * variable sets a proxy. Connections close with the scope.
 */
export const make = Effect.fnUntraced(function* (
  rules: Egress.Rules,
  limits: Limits
): Effect.fn.Return<Http, never, Scope.Scope> {
  const makeAgent = ({ scope, trust }: Egress.Target) =>
    new Agent({
      connections: limits.connectionsPerHost,
      keepAliveTimeout: idleMillis,
      keepAliveMaxTimeout: idleMillis,
      // The total time-out covers the body.
      bodyTimeout: 0,
      connect: {
        timeout: limits.connectMillis,
        ...(trust === "caller" && { lookup: Egress.lookup(rules, scope) })
      }
    })
  const agents = new Lru<string, Agent>(limits.accounts)
  const agentOf = (target: Egress.Target): Agent => {
    const key = `${target.trust} ${target.scope}`
    const agent = agents.get(key) ?? makeAgent(target)
    agents.set(key, agent)
    return agent
  }
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all([...agents.values()].map((agent) => agent.destroy())))
  )

  const callerLimits = {
    ...limits,
    responseBytes: Math.min(limits.responseBytes, limits.callerResponseBytes),
    responseValues: Math.min(limits.responseValues, limits.callerResponseValues)
  }

  const exchange = (
    target: Egress.Target,
    body: string,
    patient: boolean,
    more: Readonly<Record<string, string>>
  ) =>
    Effect.callback<Answer, HttpFailure>((resume) => {
      const timer = setTimeout(() => {
        resume(Effect.fail(failure("unreachable", `no complete answer within ${limits.totalMillis} ms`)))
        receiver.abandon()
      }, limits.totalMillis)
      const receiver = new Receiver(target.trust === "operator" ? limits : callerLimits, (answer) => {
        clearTimeout(timer)
        resume(answer)
      })
      agentOf(target).dispatch(
        {
          origin: target.connection,
          path: target.path,
          method: "POST",
          headers: { ...headers, ...more },
          body,
          headersTimeout: patient ? 0 : limits.firstByteMillis
        },
        receiver
      )
      return Effect.sync(() => {
        clearTimeout(timer)
        receiver.abandon()
      })
    })

  return { post: (target, body, patient, more = {}) => exchange(target, body, patient, more) }
})
