import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage
} from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import * as FiberId from "effect/FiberId"
import type * as Scope from "effect/Scope"
import * as JsonSteps from "../../../domain/json/JsonSteps.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as InSlices from "../InSlices.js"
import { ValueCount } from "../ValueCount.js"
import * as Egress from "./Egress.js"

export interface Limits {
  /** From the start to an open connection, TLS and the wait for a free one included. */
  readonly connectMillis: number
  /** From an open connection to the headers of the answer, for requests that nodes answer at once. */
  readonly firstByteMillis: number
  /** From the start to the last byte of the answer. */
  readonly totalMillis: number
  readonly responseBytes: number
  /** The same of nodes that callers name, where it is less. */
  readonly callerResponseBytes: number
  /** JSON values in an answer, members and elements: each takes up memory, whatever its length. */
  readonly responseValues: number
  /** To one host, for one account or the operator. */
  readonly connectionsPerHost: number
  /** How many accounts' idle connections are kept; those of the account not heard of for longest are left to end. */
  readonly accounts: number
}

/**
 * No answer, or none that may be read.
 *
 * - `forbidden`: the name leads to an address that callers may not reach
 * - `unreachable`: no connection, no answer in time, or it was cut off
 * - `garbled`: it is not HTTP, is compressed, or is not UTF-8
 * - `oversized`: it is too large
 */
export class HttpFailure extends Data.TaggedError("HttpFailure")<{
  readonly reason: "forbidden" | "unreachable" | "garbled" | "oversized"
  readonly message: string
  /** Asking again may help: the connection was refused or cut. */
  readonly passing: boolean
}> {}

export interface Answer {
  readonly status: number
  /** The Retry-After header as it came. */
  readonly retryAfter: string | undefined
  readonly body: string
  /** The body parsed, where that was done already; `Left` when it is not JSON. */
  readonly json?: Either.Either<unknown, string>
}

/** `plain`: no string of the body has a backslash or a control character. */
interface Received extends Answer {
  readonly plain: boolean
}

/** Sends one POST with a JSON body. `patient`: the answer may take all of the total time to begin. */
export interface Http {
  readonly post: (target: Egress.Target, body: string, patient: boolean) => Effect.Effect<Answer, HttpFailure>
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

/** The messages of the causes are not shown: they hold addresses and header bytes. */
const fromError = (error: unknown): HttpFailure => {
  if (error instanceof Egress.Blocked) return failure("forbidden", "the address is not allowed")
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  if (code.startsWith("HPE_")) return failure("garbled", "the answer is not HTTP")
  if (code === "" && error instanceof AggregateError) return fromError(error.errors[0])
  return failure(
    "unreachable",
    code === "" ? "the connection failed" : `the connection failed (${code})`,
    passingCodes.has(code)
  )
}

/** The stages of one exchange. Whatever happens to the request completes them, so no event finds nobody listening. */
interface Exchange {
  readonly request: ClientRequest
  readonly connected: Deferred.Deferred<void, HttpFailure>
  readonly begun: Deferred.Deferred<void, HttpFailure>
  readonly answered: Deferred.Deferred<Received, HttpFailure>
}

const stage = <A>() => Deferred.unsafeMake<A, HttpFailure>(FiberId.none)

const receive = (
  response: IncomingMessage,
  { responseBytes: limit, responseValues }: Pick<Limits, "responseBytes" | "responseValues">,
  done: (answer: Effect.Effect<Received, HttpFailure>) => void
): void => {
  const refuse = (why: HttpFailure) => {
    done(Effect.fail(why))
    response.destroy()
  }
  const tooLarge = failure("oversized", `the answer is larger than ${limit} bytes`)
  const tooMany = failure(
    "oversized",
    `the answer is too large: it is larger than ${limit} bytes, or holds more than ${responseValues} JSON values`
  )
  const utf8 = new TextDecoder("utf-8", { fatal: true })
  const garbled = failure("garbled", "the answer is not UTF-8")
  let body = ""
  const decode = (chunk?: Buffer): boolean => {
    try {
      body += chunk === undefined ? utf8.decode() : utf8.decode(chunk, { stream: true })
      return true
    } catch {
      refuse(garbled)
      return false
    }
  }
  const values = new ValueCount()
  let size = 0
  response.on("error", (error) => done(Effect.fail(fromError(error))))
  response.on("close", () => done(Effect.fail(failure("unreachable", "the answer was cut off", true))))
  if ((response.headers["content-encoding"] ?? "identity") !== "identity") {
    refuse(failure("garbled", "the answer is compressed, which was not asked for"))
    return
  }
  if (Number(response.headers["content-length"] ?? 0) > limit) {
    refuse(tooLarge)
    return
  }
  response.on("data", (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) return refuse(tooLarge)
    if (values.add(chunk) > responseValues) return refuse(tooMany)
    decode(chunk)
  })
  response.on("end", () => {
    if (!response.complete) return
    if (decode())
      done(
        Effect.succeed({
          status: response.statusCode ?? 0,
          retryAfter: response.headers["retry-after"],
          body,
          plain: values.plain
        })
      )
  })
}

const start = (
  request: ClientRequest,
  body: string,
  limits: Pick<Limits, "responseBytes" | "responseValues">
): Exchange => {
  const connected = stage<void>()
  const begun = stage<void>()
  const answered = stage<Received>()
  const fail = (error: unknown) => {
    const failed = Effect.fail(fromError(error))
    for (const each of [connected, begun]) Deferred.unsafeDone(each, failed)
    Deferred.unsafeDone(answered, failed)
  }
  let responded = false
  request.on("error", fail)
  request.on("close", () => {
    // From the response on, the response tells how it ended.
    if (!responded) fail(Object.assign(new Error(), { code: "ECONNRESET" }))
  })
  request.on("socket", (socket) => {
    const open = () => Deferred.unsafeDone(connected, Effect.void)
    if (!socket.connecting) return open()
    socket.once("encrypted" in socket ? "secureConnect" : "connect", open)
  })
  request.on("response", (response) => {
    responded = true
    Deferred.unsafeDone(connected, Effect.void)
    Deferred.unsafeDone(begun, Effect.void)
    receive(response, limits, (answer) => Deferred.unsafeDone(answered, answer))
  })
  request.end(body)
  return { request, connected, begun, answered }
}

const within = <A>(effect: Effect.Effect<A, HttpFailure>, millis: number, what: string) =>
  Effect.timeoutFail(effect, {
    duration: millis,
    onTimeout: () => failure("unreachable", `no ${what} within ${millis} ms`)
  })

interface Pool {
  readonly http: HttpAgent
  readonly https: HttpsAgent
}

/**
 * Keep-alive connections, those of each account and those of the operator apart. Redirects are answers like any other. When the
 * scope closes, so do the connections.
 */
export const make = (rules: Egress.Rules, limits: Limits): Effect.Effect<Http, never, Scope.Scope> =>
  Effect.gen(function* () {
    const makePool = (trust: Egress.Trust): Pool => {
      const options = {
        keepAlive: true,
        // Below what servers usually keep an idle connection for, so that a request seldom meets a closing one.
        timeout: 4_000,
        maxSockets: limits.connectionsPerHost,
        maxFreeSockets: 4,
        scheduling: "lifo" as const,
        ...(trust === "caller" && { lookup: Egress.lookup(rules) })
      }
      return { http: new HttpAgent(options), https: new HttpsAgent(options) }
    }
    const pools = new Lru<string, Pool>(limits.accounts)
    const poolOf = ({ scope, trust }: Egress.Target): Pool => {
      const key = `${trust} ${scope}`
      const pool = pools.get(key) ?? makePool(trust)
      pools.set(key, pool)
      return pool
    }
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const pool of pools.values()) {
          pool.http.destroy()
          pool.https.destroy()
        }
      })
    )

    const makeRequest = (target: Egress.Target, length: number): ClientRequest => {
      const pool = poolOf(target)
      const options = {
        method: "POST",
        hostname: target.hostname,
        port: target.port,
        path: target.path,
        headers: {
          "content-type": "application/json",
          "content-length": length,
          accept: "application/json",
          "user-agent": "castellan"
        }
      }
      return target.secure
        ? httpsRequest({ ...options, agent: pool.https })
        : httpRequest({ ...options, agent: pool.http })
    }

    const limitsOf = ({ trust }: Egress.Target) =>
      trust === "operator"
        ? limits
        : { ...limits, responseBytes: Math.min(limits.responseBytes, limits.callerResponseBytes) }

    return {
      post: (target, body, patient) =>
        within(
          Effect.acquireUseRelease(
            Effect.try({
              try: () => start(makeRequest(target, Buffer.byteLength(body)), body, limitsOf(target)),
              catch: fromError
            }),
            ({ answered, begun, connected }) =>
              within(Deferred.await(connected), limits.connectMillis, "connection").pipe(
                Effect.zipRight(
                  patient
                    ? Deferred.await(begun)
                    : within(Deferred.await(begun), limits.firstByteMillis, "answer")
                ),
                Effect.zipRight(Deferred.await(answered))
              ),
            ({ request }, exit) =>
              Effect.sync(() => {
                if (exit._tag === "Failure") request.destroy()
              })
          ),
          limits.totalMillis,
          "complete answer"
        ).pipe(
          Effect.flatMap(({ plain, ...answer }) =>
            Effect.map(
              InSlices.run(() => JsonSteps.parse(answer.body, plain)),
              (json) => ({ ...answer, json })
            )
          )
        )
    }
  })
