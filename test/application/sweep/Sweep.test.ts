import { expect } from "@effect/vitest"
import { Context, Effect, Queue } from "effect"
import { Sponsorships } from "../../../src/application/pay/Sponsorships.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as ClockTrust from "../../../src/application/ports/clock/ClockTrust.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { Networks } from "../../../src/application/ports/Networks.js"
import { Lifetime } from "../../../src/application/runtime/Lifetime.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import { Submissions } from "../../../src/application/usecases/operations/Submissions.js"
import * as Log from "../../support/Log.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const now = 10_000_000_000
const dayMillis = 86_400_000

/** What the journal was asked to forget within so many milliseconds. */
const forgotten = (
  clock: ClockTrust.Standing,
  millis: number,
  chainIds = Effect.succeed<Array<bigint>>([])
) =>
  Effect.gen(function* () {
    const trust = ClockTrust.make()
    yield* trust.become(clock)
    yield* Time.setTime(now)
    const before: Array<number> = []
    const context = Context.make(Lifetime, {
      nudges: yield* Queue.sliding<void>(1),
      scope: yield* Effect.scope,
      stopWaiting: Effect.void
    }).pipe(
      Context.add(ClockTrust.ClockTrust, trust),
      Context.add(Networks, { profile: () => Effect.succeed(null), chainIds }),
      Context.add(RequestJournal, {
        forget: (time: number) => Effect.sync(() => void before.push(time))
      } as unknown as RequestJournal["Service"]),
      Context.add(Submissions, { start: Effect.void } as unknown as Submissions),
      Context.add(ChainRpc, {} as ChainRpc["Service"]),
      Context.add(Budgets, {} as Budgets["Service"]),
      Context.add(Sponsorships, {} as Sponsorships)
    )
    yield* Effect.provide(Sweep.start, context)
    yield* Time.adjust(millis)
    return before
  })

test("bodies, answers and idempotency keys are deleted 30 days after their requests' ends", function* () {
  expect(yield* forgotten("trusted", 1_000)).toEqual([now - 30 * dayMillis])
  for (const clock of ["asking", "unheard", "doubted"] as const)
    expect(yield* forgotten(clock, 20_000)).toEqual([])
})

test("an hour in which a part fails is logged seven times, and keeps no other part from being done", function* () {
  const lines = yield* Log.listen
  const away = Effect.die(new Error("away"))
  expect(yield* forgotten("trusted", 3_610_000, away)).toHaveLength(2)
  expect(Log.told(lines, "a sweep of the journal failed").length).toBeGreaterThan(0)
})
