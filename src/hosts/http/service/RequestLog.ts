import type * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Metrics from "../../../application/observe/Metrics.js"

/** What is logged of a request: nothing that a caller wrote, except the method and path of a known endpoint. */
export interface Entry {
  readonly requestId: string
  accountId: string | null
  endpoint: string | null
  /** The chain that it was about, as far as that came out. */
  chainId: bigint | null
  /** Null: nobody was left to answer. */
  status: number | null
  code: string | null
  millis: number
}

interface Figures {
  readonly counted: Metric.Metric<number, unknown>
  readonly timed: Metric.Metric<number, unknown>
}

/** The figures by what their labels say, which is bounded. */
const known = new Map<string, Figures>()

const figuresOf = ({ code, endpoint, status }: Entry): Figures => {
  const key = `${endpoint} ${status} ${code}`
  const before = known.get(key)
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
  known.set(key, made)
  return made
}

/** The figures of an answered request. */
export const figures = (entry: Entry, context: Context.Context<never>): void => {
  const { counted, timed } = figuresOf(entry)
  counted.updateUnsafe(1, context)
  timed.updateUnsafe(entry.millis / 1_000, context)
}

/** One line per request. Whatever a logger throws: the request is answered all the same. */
export const line = (entry: Entry): Effect.Effect<void> =>
  Effect.logInfo("request").pipe(
    Effect.annotateLogs({
      requestId: entry.requestId,
      accountId: entry.accountId,
      endpoint: entry.endpoint,
      chainId: entry.chainId?.toString() ?? null,
      status: entry.status,
      code: entry.code,
      ms: entry.millis
    }),
    Effect.catchCause(() => Effect.void)
  )

/** The cause of an `internal error`, for the operator only. A cause that a logger can not print takes nobody down. */
export const defect = (entry: Entry, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("request failed", cause).pipe(
    Effect.annotateLogs({ requestId: entry.requestId, endpoint: entry.endpoint }),
    Effect.catchCause(() => Effect.void)
  )
