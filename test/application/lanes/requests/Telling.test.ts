import { expect } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import * as Telling from "../../../../src/application/lanes/requests/Telling.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import { RemoteOpJournal } from "../../../../src/application/ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../../src/application/ports/journal/TransactionJournal.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Make from "../../../support/journal/Make.js"
import { testOver } from "../../../support/Test.js"

const test = testOver(InMemory.journal)

test("whoever follows a request sees at once that it is accepted, signed, submitted, and included by whomever, not at the next look of a second", function* () {
  const requestJournal = yield* RequestJournal
  const wakeUps = yield* WakeUps.make(requestJournal)
  const own = Telling.journals(wakeUps, {
    requestJournal,
    transactionJournal: yield* TransactionJournal,
    remoteOpJournal: yield* RemoteOpJournal
  })
  const seen = (after: number) =>
    Effect.fork(
      wakeUps.until(
        WakeUps.events("r1"),
        Effect.map(Effect.orDie(requestJournal.events("r1", after, 10)), (events) =>
          events.length === 0 ? null : events.map(({ kind }) => kind)
        )
      )
    )
  const first = yield* seen(0)
  yield* Effect.yieldNow()
  yield* own.requestJournal.accept(Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
  expect(yield* Fiber.join(first)).toEqual(["accepted"])
  yield* own.transactionJournal.allocate(Make.allocation("r1", { ops: [0] }))
  // Two looks are not made at one moment.
  yield* TestClock.adjust("25 millis")
  const second = yield* Effect.zipLeft(seen(1), Effect.yieldNow())
  yield* own.transactionJournal.recordSigned(Make.signed(0n))
  expect(yield* Fiber.join(second)).toEqual(["signed"])
  yield* TestClock.adjust("25 millis")
  const third = yield* Effect.zipLeft(seen(2), Effect.yieldNow())
  yield* own.transactionJournal.recordSubmitted(Make.lane, [{ nonce: 0n, txHash: Make.signed(0n).txHash }])
  expect(yield* Fiber.join(third)).toEqual(["submitted"])
  yield* TestClock.adjust("25 millis")
  const fourth = yield* Effect.zipLeft(seen(3), Effect.yieldNow())
  const landed = Make.landed(Make.word(1), 9n)
  yield* own.remoteOpJournal.recordInclusions(Make.lane.signer, Make.chainId, [landed], Make.node())
  expect(yield* Fiber.join(fourth)).toEqual(["included"])
})
