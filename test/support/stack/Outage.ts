import * as Effect from "effect/Effect"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { type Around, type Spot, wrap } from "./Power.js"
import type { LifeOptions } from "./Stack.js"

/** A database that is away for a while, in a process that lives on. */
export interface Outage {
  readonly life: Pick<LifeOptions, "wrapJournal">
  /** Whether the spot was reached, and the database has come back since. */
  readonly isOver: () => boolean
}

/**
 * From the spot on so many calls of the journal fail, whatever they are; `after`: the first of them has taken effect all
 * the same.
 */
export const make = (spot: Spot, failures: number): Outage => {
  let calls = 0
  let failed = 0
  let away = false
  const lost = new JournalError({ message: "the database is away" })
  const around: Around = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const isSpot = name === spot.step && failed === 0 && ++calls === (spot.nth ?? 1)
      if (isSpot) away = true
      if (!away) return effect
      failed += 1
      if (failed >= failures) away = false
      const fail = Effect.fail(lost) as Effect.Effect<never, E>
      return isSpot && spot.moment === "after" ? Effect.zipRight(effect, fail) : fail
    })
  return {
    life: { wrapJournal: (journal) => wrap(journal, around) },
    isOver: () => failed >= failures
  }
}
