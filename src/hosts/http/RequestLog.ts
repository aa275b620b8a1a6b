import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

/** What is logged of a request: nothing that a caller wrote, except the method and path of a known endpoint. */
export interface Entry {
  readonly requestId: string
  accountId: string | null
  endpoint: string | null
  /** Null: nobody was left to answer. */
  status: number | null
  code: string | null
  millis: number
}

/** One line per request. */
export const line = (entry: Entry): Effect.Effect<void> =>
  harmless(Effect.logInfo("request"), {
    requestId: entry.requestId,
    accountId: entry.accountId,
    endpoint: entry.endpoint,
    status: entry.status,
    code: entry.code,
    ms: entry.millis
  })

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
