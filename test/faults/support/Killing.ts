import * as Effect from "effect/Effect"
import type * as Journals from "../../support/journal/Journals.js"

/** The environment variable that names the place of the kill. */
export const variable = "CASTELLAN_TEST_KILL"

/** At the `nth` call of the method, or of any; before it, or when its effect is durable. Calls count while it is armed. */
export interface Spot {
  readonly step: string | null
  readonly moment: "before" | "after"
  readonly nth: number
  /** From the start, or only once the process is sent `armSignal`. */
  readonly armed: boolean
}

/** Arms and disarms. */
export const armSignal = "SIGUSR2"

const die = Effect.sync(() => {
  process.kill(process.pid, "SIGKILL")
})

/** A journal at one of whose calls the process ends, as by a power cut. Methods that it will have one day are covered. */
export const wrap =
  (spot: Spot) =>
  (journal: Journals.Methods): Journals.Methods => {
    let armed = spot.armed
    process.on(armSignal, () => {
      armed = !armed
    })
    let calls = 0
    const around = (name: string, effect: Effect.Effect<unknown, unknown, unknown>) =>
      Effect.suspend(() => {
        if (!armed || (spot.step !== null && spot.step !== name)) return effect
        calls += 1
        if (calls !== spot.nth) return effect
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
