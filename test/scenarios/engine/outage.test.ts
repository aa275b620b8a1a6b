import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { id as hashOf } from "ethers"
import { describe, expect, it } from "vitest"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import { type Around, wrap } from "../../support/stack/Power.js"
import { useStack } from "../../support/stack/Stack.js"

const stack = useStack({}, (stack) => stack.create("outage"))

/** Methods of the journal that every `/execute` calls, in this order. */
const steps = ["read", "accept", "ready", "nextNonce", "record", "settle", "ended", "answer"]
const spots = steps.flatMap((step) =>
  (["before", "after"] as const).flatMap((moment) =>
    [1, 12].map((failures) => [failures, moment, step] as const)
  )
)

describe("a database that is away for a while, in a process that lives on", { timeout: 120_000 }, () => {
  it.each(spots)(
    "strands no request when this many calls fail: %i from %s `%s` on",
    async (failures, moment, step) => {
      let [failed, isAway] = [0, false]
      const lost = new JournalError({ message: "the database is away" })
      /** From the spot on every call fails; `after`: the first of them has still taken effect. */
      const around: Around = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          const isSpot = name === step && failed === 0
          if (isSpot) isAway = true
          if (!isAway) return effect
          failed += 1
          if (failed >= failures) isAway = false
          const fail = Effect.fail(lost) as Effect.Effect<never, E>
          return isSpot && moment === "after" ? Effect.andThen(effect, fail) : fail
        })
      await stack.living({ wrapJournal: (journal) => wrap(journal, around) }, async (runtime) => {
        const [id, next] = [
          hashOf(`${step} ${moment} ${failures}`),
          hashOf(`next ${step} ${moment} ${failures}`)
        ]
        const caller = stack.caller()
        const exit = await runtime.runPromiseExit(stack.execute([stack.hit("outage", id)], {}, caller))
        const code = Exit.isSuccess(exit)
          ? "done"
          : JSON.stringify(exit.cause).match(/"code":"([a-z_]+)"/)?.[1]
        expect(["done", "unavailable", "outcome_unknown"]).toContain(code)
        if (code === "outcome_unknown") await stack.answerOf(runtime, caller.requestId)
        // The lane and the wallet continue from the state that the outage left.
        const works = async () =>
          Exit.isSuccess(await runtime.runPromiseExit(stack.execute([stack.hit("outage", next)])))
        await expect.poll(works, { timeout: 60_000 }).toBe(true)
        expect(await stack.counts(id)).toEqual([code === "unavailable" ? 0 : 1])
        expect(await stack.openOf(runtime)).toEqual([])
        if (failures === 1) expect(failed).toBe(1)
      })
    }
  )
})
