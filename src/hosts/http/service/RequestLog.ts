import type * as Cause from "effect/Cause"
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

/** The figures of an answered request. */
export const figures = ({ code, endpoint, millis, status }: Entry): Effect.Effect<void> => {
  const name = endpoint ?? "other"
  return Effect.zipRight(
    Metrics.count(Metrics.requests, { endpoint: name, status: String(status ?? 0), code: code ?? "" }),
    Metric.update(Metric.tagged(Metrics.requestSeconds, "endpoint", name), millis / 1_000)
  )
}

/** One line per request, and its figures. */
export const line = (entry: Entry): Effect.Effect<void> =>
  Effect.zipRight(
    figures(entry),
    harmless(Effect.logInfo("request"), {
      requestId: entry.requestId,
      accountId: entry.accountId,
      endpoint: entry.endpoint,
      chainId: entry.chainId?.toString() ?? null,
      status: entry.status,
      code: entry.code,
      ms: entry.millis
    })
  )

/** The cause of an `internal error`, for the operator only. */
export const defect = (entry: Entry, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  harmless(Effect.logError("request failed", cause), {
    requestId: entry.requestId,
    endpoint: entry.endpoint
  })

/** Whatever a logger throws, for instance at a cause that it can not print: the request is answered all the same. */
const harmless = (
  log: Effect.Effect<void>,
  annotations: Readonly<Record<string, unknown>>
): Effect.Effect<void> => Effect.catchAllCause(Effect.annotateLogs(log, annotations), () => Effect.void)
