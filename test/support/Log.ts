import * as Effect from "effect/Effect"
import * as HashSet from "effect/HashSet"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"

export interface Line {
  readonly level: string
  readonly message: string
  readonly annotations: Readonly<Record<string, unknown>>
}

/** Warnings and errors, and that they are over, with this in their text. */
export const told = (lines: ReadonlyArray<Line>, what: string): ReadonlyArray<string> =>
  lines
    .filter(
      ({ level, message }) => message.includes(what) && (level !== "INFO" || message.startsWith("over: "))
    )
    .map(({ level }) => level)

/** What an hour of one trouble is told by: at 0, 1, 3, 7, 15 and 31 minutes, and that it is over. */
export const ofAnHour = (level: string): ReadonlyArray<string> => [...Array(6).fill(level), "INFO"]

const keeping = (lines: Array<Line>) =>
  Logger.make(({ fiber, logLevel, message }) => {
    lines.push({
      level: logLevel.toUpperCase(),
      message: String(message),
      annotations: Object.fromEntries(Object.entries(fiber.getRef(References.CurrentLogAnnotations)))
    })
  })

/** Keeps what is logged from now on until the scope ends. */
export const listen: Effect.Effect<ReadonlyArray<Line>, never, Scope.Scope> = Effect.suspend(() => {
  const lines: Array<Line> = []
  return Effect.as(Effect.locallyScoped(References.CurrentLoggers, HashSet.make(keeping(lines))), lines)
})

/** Keeps what is logged in place of printing it. */
export const make = (): { readonly lines: Array<Line>; readonly layer: Layer.Layer<never> } => {
  const lines: Array<Line> = []
  return { lines, layer: Logger.layer([keeping(lines)]) }
}
