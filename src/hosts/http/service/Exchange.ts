import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Metric from "effect/Metric"
import * as Metrics from "../../../application/observe/Metrics.js"
import type { Principal } from "../../../application/ports/Tenants.js"
import type { Ticket } from "../limits/InFlightLimit.js"
import * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import * as RequestId from "../message/RequestId.js"
import type { Endpoint } from "./Endpoints.js"

/** What becomes known of a request on its way; for the log, and the headers of whatever the answer is. */
export interface Known {
  readonly requestId: string
  /** Unix milliseconds. */
  readonly began: number
  readonly method: string
  /** What of the contract it asked for. */
  endpoint: Endpoint | null
  /** Whose key it brought, once that was looked up. */
  principal: Principal | null
  /** The chain that it was about, as far as that came out. */
  chainId: bigint | null
  /** Of the answer; null: nobody was left to take it. */
  status: number | null
  /** Of an answer that is no success. */
  code: string | null
  millis: number
  /** Of every answer from now on. */
  headers: Readonly<Record<string, string>>
  /** Where a request without a valid key is counted; null: it is not. */
  anonymousAddress: string | null
  ticket: Ticket | null
  /** One of many that are alike: it leaves no line in the log. */
  isQuiet: boolean
}

export const begin = (method: string, now: number): Known => ({
  requestId: RequestId.make(now),
  began: now,
  method,
  endpoint: null,
  principal: null,
  chainId: null,
  status: null,
  code: null,
  millis: 0,
  headers: {},
  anonymousAddress: null,
  ticket: null,
  isQuiet: false
})

/** The request that a fiber answers. */
export const Exchange = Context.Reference<Known>("castellan/http/Exchange", {
  defaultValue: () => begin("", 0)
})

/** The answer to a request that is refused. A body that broke off has nobody who waits for one. */
export const refuse = (
  why: ErrorEnvelope.Problem | Body.Broken
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.flatMap(Exchange, (known) => {
    if (why instanceof Body.Broken) return Effect.die(why)
    known.code = why.code
    return Effect.succeed(ErrorEnvelope.response(why, known.requestId))
  })

/** Nothing that a caller wrote, except the method and path of a known endpoint. */
const nameOf = ({ endpoint, method }: Known): string | null =>
  endpoint === null ? null : `${method} ${endpoint.path}`

const figuresOf = (endpoint: string, status: number, code: string) => ({
  counted: Metric.withAttributes(Metrics.requests, { endpoint, status: String(status), code }),
  timed: Metric.withAttributes(Metrics.requestSeconds, { endpoint })
})

/** The figures by what their labels say, which is bounded. */
const kept = new Map<string, ReturnType<typeof figuresOf>>()

/** The figures of an answered request. */
export const count = (known: Known, context: Context.Context<never>): void => {
  const { code, status } = known
  const endpoint = nameOf(known) ?? "other"
  const key = `${endpoint} ${status} ${code}`
  const figures = kept.get(key) ?? figuresOf(endpoint, status ?? 0, code ?? "")
  kept.set(key, figures)
  figures.counted.updateUnsafe(1, context)
  figures.timed.updateUnsafe(known.millis / 1_000, context)
}

/** One line per request. Whatever a logger throws: the request is answered all the same. */
export const log = (known: Known): Effect.Effect<void> =>
  Effect.logInfo("request").pipe(
    Effect.annotateLogs({
      requestId: known.requestId,
      accountId: known.principal?.accountId ?? null,
      endpoint: nameOf(known),
      chainId: known.chainId?.toString() ?? null,
      status: known.status,
      code: known.code,
      ms: known.millis
    }),
    Effect.catchCause(() => Effect.void)
  )

/** The cause of an `internal error`, for the operator only. A cause that a logger can not print takes nobody down. */
export const logDefect = (known: Known, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("request failed", cause).pipe(
    Effect.annotateLogs({ requestId: known.requestId, endpoint: nameOf(known) }),
    Effect.catchCause(() => Effect.void)
  )
