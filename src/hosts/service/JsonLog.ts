import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { print } from "../../domain/json/Json.js"

/**
 * Logs one JSON object per line: `time`, `level`, `message`, the annotations, and `cause` if present. URLs keep only scheme
 * and host (keys sit in paths); causes, which quote arbitrary text, also lose hex of 32 bytes and more (the length of a
 * private key).
 */
export const make = (write: (line: string) => void): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, date, fiber, logLevel, message }) => {
    const line: Record<string, unknown> = {
      time: date.toISOString(),
      level: logLevel.toUpperCase(),
      message: Array.isArray(message) ? message.map(text).join(" ") : text(message)
    }
    const annotations = fiber.getRef(References.CurrentLogAnnotations)
    for (const name in annotations) line[name] = plain(annotations[name])
    if (cause.reasons.length > 0) line.cause = withoutSecrets(pretty(cause))
    write(`${withoutPaths(JSON.stringify(line))}\n`)
  })

/** Most buffered text, in UTF-16 units, and longest delay, in ms. */
const most = { units: 65_536, millis: 5 }

/** Joins lines into one `write`: each is a system call. */
export const batch = (
  write: (lines: string) => void
): { readonly write: (line: string) => void; readonly flush: () => void } => {
  let lines = ""
  const flush = () => {
    const written = lines
    lines = ""
    if (written !== "") write(written)
  }
  return {
    write: (line) => {
      if (lines === "") setTimeout(flush, most.millis)
      lines += line
      if (lines.length >= most.units) flush()
    },
    flush
  }
}

/** Replaces the default logger; writes to standard output. */
export const layer: Layer.Layer<never> = Layer.unwrap(
  Effect.gen(function* () {
    const { flush, write } = batch((lines) => void process.stdout.write(lines))
    process.on("exit", flush)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        process.off("exit", flush)
        flush()
      })
    )
    return Logger.layer([make(write)])
  })
)

const plain = (value: unknown): unknown =>
  value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : text(value)

/** Never throws: a throwing logger crashes its caller, and logged values may hold bigints and cycles. */
const text = (value: unknown): string => {
  try {
    return typeof value === "object" && value !== null ? print(value) : String(value)
  } catch {
    return Object.prototype.toString.call(value)
  }
}

const pretty = (cause: Cause.Cause<unknown>): string => {
  try {
    return Cause.pretty(cause)
  } catch {
    return cause.reasons
      .flatMap((reason) => {
        if (Cause.isInterruptReason(reason)) return []
        return text(Cause.isFailReason(reason) ? reason.error : reason.defect)
      })
      .join("\n")
  }
}

const withoutPaths = (text: string): string =>
  text.includes("://")
    ? text.replace(/\b((?:https?|wss?):\/\/)(?:[^\s"'\\/@]*@)?([^\s"'\\/?#]*)[^\s"'\\]*/gi, "$1$2")
    : text

const withoutSecrets = (text: string): string =>
  text.replace(/(?:0x)?[0-9a-f]{64,}/gi, (hex) => `${hex.slice(0, 10)}...`)
