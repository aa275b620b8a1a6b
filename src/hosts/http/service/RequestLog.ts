import type * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Metrics from "../../../application/observe/Metrics.js"
import type { Known } from "../message/Exchange.js"

/** What is logged of a request is nothing that a caller wrote, except the method and path of a known endpoint. */

const nameOf = ({ endpoint, method }: Known): string | null =>
  endpoint === null ? null : `${method} ${endpoint.path}`

interface Figures {
  readonly counted: Metric.Metric<number, unknown>
  readonly timed: Metric.Metric<number, unknown>
}

/** The figures by what their labels say, which is bounded. */
const kept = new Map<string, Figures>()

const figuresOf = (known: Known): Figures => {
  const { code, status } = known
  const endpoint = nameOf(known)
  const key = `${endpoint} ${status} ${code}`
  const before = kept.get(key)
  if (before !== undefined) return before
  const name = endpoint ?? "other"
  const made = {
    counted: Metric.withAttributes(Metrics.requests, {
      endpoint: name,
      status: String(status ?? 0),
      code: code ?? ""
    }),
    timed: Metric.withAttributes(Metrics.requestSeconds, { endpoint: name })
  }
  kept.set(key, made)
  return made
}

/** The figures of an answered request. */
export const figures = (known: Known, context: Context.Context<never>): void => {
  const { counted, timed } = figuresOf(known)
  counted.updateUnsafe(1, context)
  timed.updateUnsafe(known.millis / 1_000, context)
}

/** One line per request. Whatever a logger throws: the request is answered all the same. */
export const line = (known: Known): Effect.Effect<void> =>
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
export const defect = (known: Known, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("request failed", cause).pipe(
    Effect.annotateLogs({ requestId: known.requestId, endpoint: nameOf(known) }),
    Effect.catchCause(() => Effect.void)
  )
