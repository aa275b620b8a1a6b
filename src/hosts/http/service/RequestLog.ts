import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as HashMap from "effect/HashMap"
import * as LogLevel from "effect/LogLevel"
import * as MetricLabel from "effect/MetricLabel"
import * as References from "effect/References"
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

type Labels = ReadonlyArray<MetricLabel.MetricLabel>

const labelsOf = (labels: Readonly<Record<string, string>>): Labels =>
  Object.entries(labels).map(([name, value]) => MetricLabel.make(name, value))

interface EntryLabels {
  readonly counted: Labels
  readonly timed: Labels
}

/** Labels by what they say, which is bounded. A metric finds its figure by the array, and by its contents much slower. */
const known = new Map<string, EntryLabels>()

const labelsFor = ({ code, endpoint, status }: Entry): EntryLabels => {
  const key = `${endpoint} ${status} ${code}`
  const before = known.get(key)
  if (before !== undefined) return before
  const name = endpoint ?? "other"
  const made = {
    counted: labelsOf({ endpoint: name, status: String(status ?? 0), code: code ?? "" }),
    timed: labelsOf({ endpoint: name })
  }
  known.set(key, made)
  return made
}

/** The figures of an answered request. */
export const figures = (entry: Entry): void => {
  const { counted, timed } = labelsFor(entry)
  Metrics.requests.unsafeUpdate(1, counted)
  Metrics.requestSeconds.unsafeUpdate(entry.millis / 1_000, timed)
}

/** One line per request, by the loggers of the fiber, as `Effect.logInfo` with annotations writes it at more expense. */
export const line = (entry: Entry, fiber: Fiber.Fiber<unknown, unknown>, now: number): void => {
  if (LogLevel.isGreaterThan(fiber.getRef(References.MinimumLogLevel), "Info")) return
  const annotations = HashMap.mutate(fiber.getRef(References.CurrentLogAnnotations), (all) => {
    HashMap.set(all, "requestId", entry.requestId)
    HashMap.set(all, "accountId", entry.accountId)
    HashMap.set(all, "endpoint", entry.endpoint)
    HashMap.set(all, "chainId", entry.chainId?.toString() ?? null)
    HashMap.set(all, "status", entry.status)
    HashMap.set(all, "code", entry.code)
    HashMap.set(all, "ms", entry.millis)
  })
  const options = {
    fiberId: fiber.id(),
    logLevel: "Info",
    message: ["request"],
    cause: Cause.empty,
    context: fiber.getFiberRefs(),
    spans: fiber.getRef(References.CurrentLogSpans),
    annotations,
    date: new Date(now)
  }
  try {
    for (const logger of fiber.getRef(References.CurrentLoggers)) logger.log(options)
  } catch {
    // Whatever a logger throws: the request is answered all the same.
  }
}

/** The cause of an `internal error`, for the operator only. A cause that a logger can not print takes nobody down. */
export const defect = (entry: Entry, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError("request failed", cause).pipe(
    Effect.annotateLogs({ requestId: entry.requestId, endpoint: entry.endpoint }),
    Effect.catchCause(() => Effect.void)
  )
