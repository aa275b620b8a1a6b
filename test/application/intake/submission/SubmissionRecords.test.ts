import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as InMemory from "../../../../src/adapters/sql/journal/InMemory.js"
import * as SubmissionRecords from "../../../../src/application/intake/submission/SubmissionRecords.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import { RemoteOpJournal } from "../../../../src/application/ports/journal/RemoteOpJournal.js"
import { RequestJournal } from "../../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../../src/application/ports/journal/TransactionJournal.js"
import * as Make from "../../../support/journal/Make.js"

/** A request whose op somebody else's transaction has included, while its own transaction is signed. */
const waiting = Effect.gen(function* () {
  const requestJournal = yield* RequestJournal
  const journal = yield* TransactionJournal
  const wakeUps = yield* WakeUps.make(requestJournal)
  yield* requestJournal.accept(Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })]))
  yield* journal.allocate(Make.allocation("r1", { ops: [0] }))
  yield* journal.recordSigned(Make.signed(0n))
  const remote = yield* RemoteOpJournal
  yield* remote.recordInclusions(Make.lane.signer, Make.chainId, [Make.landed(Make.word(1), 9n)], Make.node())
  const found = yield* Effect.fork(
    wakeUps.watching("r1", (watch) =>
      SubmissionRecords.minedOps({
        plan: { caller: { requestId: "r1" }, elements: [0] },
        componentOf: (index: number) => index,
        watch,
        ops: null
      } as unknown as SubmissionRecords.Reader)
    )
  )
  yield* TestClock.adjust("1 second")
  expect(yield* Fiber.poll(found)).toMatchObject({ _tag: "None" })
  return { found, journal, wakeUps }
})

describe("a request whose op landed in somebody else's transaction", () => {
  it.scoped("is concluded without its own transaction once the nonce of that is known to be used", () =>
    Effect.gen(function* () {
      const { found, journal, wakeUps } = yield* waiting
      yield* wakeUps.notify(yield* journal.recordExternalUse(Make.lane, 0n, []))
      expect((yield* Fiber.join(found)).txHashes).toEqual([])
    }).pipe(Effect.provide(InMemory.layer))
  )

  it.scoped("is concluded with the version of its own transaction that is mined, whichever that is", () =>
    Effect.gen(function* () {
      const { found, journal, wakeUps } = yield* waiting
      const txHash = Make.word(0x2000)
      yield* journal.recordSigned(Make.signed(0n, { txHash }))
      yield* wakeUps.notify(yield* journal.settle(Make.mined(0n, { success: false, txHash }), [], false))
      expect((yield* Fiber.join(found)).txHashes).toEqual([txHash])
    }).pipe(Effect.provide(InMemory.layer))
  )
})
