import { inspect } from "node:util"
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"

/** Records all output of a run to search it for secrets. */
export interface Leaks {
  /** Records every log line, with annotations and causes, and every span, with attributes and events. */
  readonly layer: Layer.Layer<never>
  /** Records other output: a response, an error, the output of a process. */
  readonly keep: (where: string, what: unknown) => void
  /** Places where a secret leaked. `secrets` maps names to values; the report shows only names. */
  readonly found: (secrets: Readonly<Record<string, string>>) => ReadonlyArray<string>
  /** Number of strings recorded, by place. A run that records no strings proves nothing. */
  readonly counts: () => Readonly<Record<string, number>>
}

const hexShape = /^(?:0x)?((?:[0-9a-f]{2}){8,})$/i

/** Forms in which a string may appear: encoded, quoted, as its number or bytes, or as wrapped lines. */
const guises = (secret: string): ReadonlySet<string> => {
  const texts = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]
  const lines = secret.split("\n").filter((line) => line.length >= 24 && !line.startsWith("-----"))
  const bytes = [Buffer.from(secret, "utf8")]
  const digits = hexShape.exec(secret)?.[1]
  if (digits !== undefined) {
    texts.push(digits, BigInt(`0x${digits}`).toString())
    bytes.push(Buffer.from(digits, "hex"))
  }
  const encoded = bytes.flatMap((each) => [
    each.toString("hex"),
    each.toString("base64").replace(/=+$/, ""),
    each.toString("base64url"),
    [...each].join(","),
    [...each].join(", ")
  ])
  // Short forms appear by chance.
  return new Set(
    [...texts, ...lines, ...encoded].filter((text) => text.length >= 6).map((text) => text.toLowerCase())
  )
}

const shown = (what: unknown): string => {
  if (typeof what === "string") return what
  const json = () => {
    try {
      return (
        JSON.stringify(what, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value)) ?? ""
      )
    } catch {
      return ""
    }
  }
  const stack = what instanceof Error ? `${what.stack} ${String(what.cause)}` : ""
  return `${inspect(what, { depth: 12, showHidden: true, maxStringLength: null, maxArrayLength: null })}\n${json()}\n${stack}`
}

const causeOf = (cause: Cause.Cause<unknown>): string =>
  cause.reasons.length === 0
    ? ""
    : [
        Cause.pretty(cause),
        ...cause.reasons.flatMap((reason) =>
          Cause.isFailReason(reason)
            ? [shown(reason.error)]
            : Cause.isDieReason(reason)
              ? [shown(reason.defect)]
              : []
        )
      ].join("\n")

const tracer = (keep: (text: string) => void): Tracer.Tracer =>
  Tracer.make({
    span: ({ annotations, kind, links, name, parent, sampled, startTime }) => {
      const attributes = new Map<string, unknown>()
      const span: Tracer.Span = {
        _tag: "Span",
        name,
        spanId: globalThis.crypto.randomUUID(),
        traceId: globalThis.crypto.randomUUID(),
        parent,
        annotations,
        status: { _tag: "Started", startTime },
        attributes,
        links,
        sampled,
        kind,
        end: (_, exit) =>
          keep(`${name} ${shown([...attributes])} ${Exit.isFailure(exit) ? causeOf(exit.cause) : ""}`),
        attribute: (key, value) => void attributes.set(key, value),
        event: (event, _, values) => keep(`${name} ${event} ${shown(values)}`),
        addLinks: () => {}
      }
      return span
    }
  })

export const make = (): Leaks => {
  const kept: Array<{ readonly where: string; readonly text: string }> = []
  const keep = (where: string, what: unknown) => void kept.push({ where, text: shown(what).toLowerCase() })
  const logger = Logger.make(({ fiber, cause, message }) =>
    keep(
      "log",
      [
        shown(message),
        shown(Object.entries(fiber.getRef(References.CurrentLogAnnotations))),
        causeOf(cause),
        fiber
          .getRef(References.CurrentLogSpans)
          .map(([label]) => label)
          .join()
      ].join("\n")
    )
  )
  return {
    layer: Layer.merge(
      Logger.layer([logger]),
      Layer.succeed(
        Tracer.Tracer,
        tracer((text) => keep("trace", text))
      )
    ),
    keep,
    found: (secrets) =>
      Object.entries(secrets).flatMap(([name, secret]) => {
        const forms = [...guises(secret)]
        const places = new Set(
          kept.filter(({ text }) => forms.some((form) => text.includes(form))).map(({ where }) => where)
        )
        return [...places].map((where) => `${name} in ${where}`)
      }),
    counts: () => {
      const counts: Record<string, number> = {}
      for (const { where } of kept) counts[where] = (counts[where] ?? 0) + 1
      return counts
    }
  }
}
