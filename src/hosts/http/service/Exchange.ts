import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Metrics from "../../../application/observe/Metrics.js"
import type { Principal } from "../../../application/ports/Tenants.js"
import type { Ticket } from "../limits/InFlightLimit.js"
import type { Endpoint } from "./Endpoints.js"

/** Facts about a request, collected on its way, for the log and the response headers. */
export interface Known {
  readonly requestId: string
  /** Unix milliseconds. */
  readonly began: number
  readonly method: string
  /** Endpoint of the contract; null until it is found. */
  endpoint: Endpoint | null
  /** Owner of the request's key, once looked up. */
  principal: Principal | null
  /** The request's chain, as far as known. */
  chainId: bigint | null
  /** Status of the response; null: the client has gone. */
  status: number | null
  code: string | null
  millis: number
  readonly headers: Record<string, string>
  /** Client address, parsed only for keyless callers; null: the transport has none. */
  address?: string | null
  /** Whether it counts against its address: it has shown no valid key. */
  isAnonymous: boolean
  ticket: Ticket | null
  /** Skips the log line: one of many similar requests. */
  isQuiet: boolean
}

/**
 * A UUID of version 7 (RFC 9562, 5.7): 48 bits of `now`, Unix milliseconds, and 74 random bits. Ids that grow with time are
 * stored close together, so a commit touches fewer pages of the database's indexes.
 */
export const requestIdAt = (now: number): string => {
  const time = now.toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7${globalThis.crypto.randomUUID().slice(15)}`
}

export const begin = (method: string, now: number, requestId = requestIdAt(now)): Known => ({
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

/** Includes nothing from the caller except the method and path of a known endpoint. */
const nameOf = ({ endpoint, method }: Known): string | null =>
  endpoint === null ? null : `${method} ${endpoint.path}`

const figuresOf = (endpoint: string, status: number, code: string) => ({
  counted: Metrics.requests({ endpoint, status: String(status), code }),
  timed: Metrics.requestSeconds({ endpoint })
})

/** Cached by labels, which are bounded, so that metrics need not look up their series. */
const kept = new Map<string, ReturnType<typeof figuresOf>>()

export const count = (known: Known, context: Context.Context<never>): void => {
  const { code, status } = known
  const endpoint = nameOf(known) ?? "other"
  const key = `${endpoint} ${status} ${code}`
  const figures = kept.get(key) ?? figuresOf(endpoint, status ?? 0, code ?? "")
  kept.set(key, figures)
  figures.counted.updateUnsafe(1, context)
  figures.timed.updateUnsafe(known.millis / 1_000, context)
}

export const note = <R>(context: Context.Context<R>, more: Record<string, unknown>): Context.Context<R> =>
  Context.add(context, References.CurrentLogAnnotations, {
    ...Context.get(context, References.CurrentLogAnnotations),
    ...more
  })

/** A failing logger must not fail the request. */
const line = Effect.catchCause(Effect.logInfo("request"), () => Effect.void)

export const log = (known: Known): Effect.Effect<void> =>
  Effect.updateContext(line, (context: Context.Context<never>) =>
    note(context, {
      requestId: known.requestId,
      accountId: known.principal?.accountId ?? null,
      endpoint: nameOf(known),
      chainId: known.chainId?.toString() ?? null,
      status: known.status,
      code: known.code,
      ms: known.millis
    })
  )

/** Logs the cause of an `internal error`, for the operator only. A cause that a logger cannot print does no harm. */
export const logDefect = (known: Known, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("request failed", cause).pipe(
    Effect.annotateLogs({ requestId: known.requestId, endpoint: nameOf(known) }),
    Effect.catchCause(() => Effect.void)
  )
