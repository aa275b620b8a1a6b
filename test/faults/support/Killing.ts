import * as Effect from "effect/Effect"
import type * as Statement from "effect/sql/Statement"
import type * as Journals from "../../support/journal/Journals.js"

/** The environment variable that names the place of the kill. */
export const variable = "CASTELLAN_TEST_KILL"

interface Count {
  readonly nth: number
  /** Counts from the start, or only once the process is sent `armSignal`. */
  readonly armed: boolean
}

/** At the `nth` call of the method, or of any; before it, or when its effect is durable. */
export interface Spot extends Count {
  readonly step: string | null
  readonly moment: "before" | "after"
}

/** Before the `nth` SQL statement that contains the text. */
export interface StatementSpot extends Count {
  readonly text: string
}

/** Arms and disarms. */
export const armSignal = "SIGUSR2"

const die = Effect.sync(() => {
  process.kill(process.pid, "SIGKILL")
})

/** Whether the count is reached, at each call. */
const counter = ({ armed, nth }: Count): (() => boolean) => {
  let isArmed = armed
  let calls = 0
  process.on(armSignal, () => {
    isArmed = !isArmed
  })
  return () => isArmed && ++calls === nth
}

/** Ends the process, as by a power cut, within whichever transaction the statement belongs to. */
export const atStatement = ({ text, ...count }: StatementSpot): Statement.Transformer => {
  const isReached = counter(count)
  return (statement) =>
    Effect.suspend(() =>
      statement.compile()[0].includes(text) && isReached()
        ? Effect.as(die, statement)
        : Effect.succeed(statement)
    )
}

/** A journal at one of whose calls the process ends, as by a power cut. Methods that it will have one day are covered. */
export const wrap =
  (spot: Spot) =>
  (journal: Journals.Methods): Journals.Methods => {
    const isReached = counter(spot)
    const around = (name: string, effect: Effect.Effect<unknown, unknown, unknown>) =>
      Effect.suspend(() => {
        if ((spot.step !== null && spot.step !== name) || !isReached()) return effect
        return spot.moment === "before" ? Effect.andThen(die, effect) : Effect.tap(effect, die)
      })
    const wrapped = Object.entries(journal).map(([name, member]: [string, unknown]) => {
      if (Effect.isEffect(member)) return [name, around(name, member)]
      if (typeof member !== "function") return [name, member]
      return [
        name,
        (...args: ReadonlyArray<unknown>) => {
          const made: unknown = member(...args)
          return Effect.isEffect(made) ? around(name, made) : made
        }
      ]
    })
    return Object.fromEntries(wrapped)
  }
