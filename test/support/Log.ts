import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"

export interface Line {
  readonly level: string
  readonly message: string
  readonly annotations: Readonly<Record<string, unknown>>
}

/** Levels of warnings, errors and recoveries whose text contains `what`. */
export const told = (lines: ReadonlyArray<Line>, what: string): ReadonlyArray<string> =>
  lines
    .filter(
      ({ level, message }) => message.includes(what) && (level !== "INFO" || message.startsWith("over: "))
    )
    .map(({ level }) => level)

/** Log levels of one hour of the same failure: lines at 0, 1, 3, 7, 15 and 31 minutes, then the recovery. */
export const ofAnHour = (level: string): ReadonlyArray<string> => [...Array(6).fill(level), "INFO"]

const keeping = (lines: Array<Line>) =>
  Logger.make(({ fiber, logLevel, message }) => {
    lines.push({
      level: logLevel.toUpperCase(),
      message: String(message),
      annotations: fiber.getRef(References.CurrentLogAnnotations)
    })
  })

/** Records the logs of this fiber and its children until the scope ends. */
export const listen: Effect.Effect<ReadonlyArray<Line>, never, Scope.Scope> = Effect.withFiber((fiber) => {
  const lines: Array<Line> = []
  const logTo = (loggers: ReadonlySet<Logger.Logger<unknown, unknown>>) =>
    Effect.sync(() => fiber.setContext(Context.add(fiber.context, Logger.CurrentLoggers, loggers)))
  const before = fiber.getRef(Logger.CurrentLoggers)
  return Effect.as(
    Effect.acquireRelease(logTo(new Set([keeping(lines)])), () => logTo(before)),
    lines
  )
})

/** Records logs instead of printing them. */
export const make = (): { readonly lines: Array<Line>; readonly layer: Layer.Layer<never> } => {
  const lines: Array<Line> = []
  return { lines, layer: Logger.layer([keeping(lines)]) }
}
