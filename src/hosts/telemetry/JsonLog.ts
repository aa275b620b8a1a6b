import * as Cause from "effect/Cause"
import * as HashMap from "effect/HashMap"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { print } from "../../domain/json/Json.js"

/**
 * A logger that writes one JSON object per line: `time`, `level`, `message`, the annotations, and `cause` where there
 * is one. URLs lose everything but scheme and host (keys sit in their paths); in causes, which quote whatever failed,
 * hex texts of 32 bytes and more are cut as well (a private key has 32).
 */
export const make = (write: (line: string) => void): Logger.Logger<unknown, void> =>
  Logger.make(({ annotations, cause, date, logLevel, message }) => {
    const parts = Array.isArray(message) ? message : [message]
    const line = {
      time: date.toISOString(),
      level: logLevel.label,
      message: parts.map(text).join(" "),
      ...Object.fromEntries(HashMap.map(annotations, plain)),
      ...(Cause.isEmpty(cause) ? {} : { cause: withoutSecrets(pretty(cause)) })
    }
    write(`${withoutPaths(print(line))}\n`)
  })

/** Replaces the default logger, on standard output. */
export const layer: Layer.Layer<never> = Logger.replace(
  Logger.defaultLogger,
  make((line) => void process.stdout.write(line))
)

const plain = (value: unknown): unknown =>
  value === null || typeof value === "number" || typeof value === "boolean" ? value : text(value)

/** A logger that throws takes down whoever logs: bigints and cycles inside of what is logged must not. */
const text = (value: unknown): string => {
  try {
    return typeof value === "object" && value !== null ? print(value) : String(value)
  } catch {
    return Object.prototype.toString.call(value)
  }
}

const pretty = (cause: Cause.Cause<unknown>): string => {
  try {
    return Cause.pretty(cause, { renderErrorCause: true })
  } catch {
    return [...Cause.failures(cause), ...Cause.defects(cause)].map(text).join("\n")
  }
}

const withoutPaths = (text: string): string =>
  text.replace(/\b((?:https?|wss?):\/\/)(?:[^\s"'\\/@]*@)?([^\s"'\\/?#]*)[^\s"'\\]*/gi, "$1$2")

const withoutSecrets = (text: string): string =>
  text.replace(/(?:0x)?[0-9a-f]{64,}/gi, (hex) => `${hex.slice(0, 10)}...`)
