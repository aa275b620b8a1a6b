import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Metrics from "../../../application/observe/Metrics.js"
import type { Principal } from "../../../application/ports/Tenants.js"
import type { Ticket } from "../limits/InFlightLimit.js"
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
  /** Of the answer. */
  readonly headers: Record<string, string>
  /** Its client's, parsed for strangers only; null: the transport does not tell. */
  address?: string | null
  /** Whether it is counted there: it has shown no valid key. */
  isAnonymous: boolean
  ticket: Ticket | null
  /** One of many that are alike: it leaves no line in the log. */
  isQuiet: boolean
}

export const begin = (method: string, now: number, requestId = RequestId.make(now)): Known => ({
  requestId,
  began: now,
  method,
  endpoint: null,
  principal: null,
  chainId: null,
  status: null,
  code: null,
  millis: 0,
  headers: { "x-request-id": requestId },
  isAnonymous: false,
  ticket: null,
  isQuiet: false
})

/** Nothing that a caller wrote, except the method and path of a known endpoint. */
const nameOf = ({ endpoint, method }: Known): string | null =>
  endpoint === null ? null : `${method} ${endpoint.path}`

const figuresOf = (endpoint: string, status: number, code: string) => ({
  counted: Metrics.requests({ endpoint, status: String(status), code }),
  timed: Metrics.requestSeconds({ endpoint })
})

/** By what their labels say, which is bounded: a metric for each set of labels need not find its series. */
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

/** What logs say there, and this. */
export const noted = <R>(context: Context.Context<R>, more: Record<string, unknown>): Context.Context<R> =>
  Context.add(context, References.CurrentLogAnnotations, {
    ...Context.get(context, References.CurrentLogAnnotations),
    ...more
  })

/** Whatever a logger throws: the request is answered all the same. */
const line = Effect.catchCause(Effect.logInfo("request"), () => Effect.void)

/** One line per request. */
export const log = (known: Known): Effect.Effect<void> =>
  Effect.updateContext(line, (context: Context.Context<never>) =>
    noted(context, {
      requestId: known.requestId,
      accountId: known.principal?.accountId ?? null,
      endpoint: nameOf(known),
      chainId: known.chainId?.toString() ?? null,
      status: known.status,
      code: known.code,
      ms: known.millis
    })
  )

/** The cause of an `internal error`, for the operator only. A cause that a logger cannot print takes nobody down. */
export const logDefect = (known: Known, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("request failed", cause).pipe(
    Effect.annotateLogs({ requestId: known.requestId, endpoint: nameOf(known) }),
    Effect.catchCause(() => Effect.void)
  )
