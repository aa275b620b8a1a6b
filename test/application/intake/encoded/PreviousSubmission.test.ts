import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import * as PreviousSubmission from "../../../../src/application/intake/encoded/PreviousSubmission.js"
import * as WakeUps from "../../../../src/application/lanes/requests/WakeUps.js"
import { OpJournal } from "../../../../src/application/ports/journal/OpJournal.js"
import type { OpRecord } from "../../../../src/application/ports/journal/Requests.js"
import * as Make from "../../../support/journal/Make.js"
import * as Parties from "../../../support/Parties.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const caller = Parties.caller("mine")

const record = (over: Partial<OpRecord>): OpRecord => ({
  accountId: Make.alice,
  requestId: "earlier",
  index: 0,
  userOpHash: Make.word(1),
  space: Make.space(1),
  nonceKey: 0n,
  sequence: 0n,
  returned: null,
  state: "sent",
  txHash: Make.word(2),
  success: null,
  revertData: null,
  ...over
})

/** What is found of the op at the first look; the journal answers no other one. */
const outcome = (first: OpRecord | null) => {
  let looks = 0
  const opJournal = Layer.mock(OpJournal, {
    findOp: () =>
      Effect.suspend(() => {
        looks += 1
        return looks === 1 ? Effect.succeed(first) : Effect.never
      })
  })
  const wakeUps = Layer.effect(
    WakeUps.WakeUps,
    WakeUps.make({
      finalAmong: () => Effect.succeed([]),
      newestEvents: () => Effect.succeed(new Map())
    })
  )
  return PreviousSubmission.outcome(caller, Make.chainId, Make.word(1), 1_000).pipe(
    Effect.provide(Layer.merge(opJournal, wakeUps))
  )
}

describe("an op that is posted", () => {
  it.effect.each([
    ["for the first time", null],
    ["again by the same request", record({ requestId: "mine" })],
    ["again after it was given up", record({ state: "abandoned" })]
  ] as const)("%s waits for nothing, however slow the journal is", ([, first]) =>
    Effect.gen(function* () {
      expect(yield* outcome(first)).toBeNull()
    })
  )

  test("again after it has landed has its outcome", function* () {
    expect(yield* outcome(record({ state: "settled", success: true }))).toEqual({
      success: true,
      txHash: Make.word(2),
      revertData: null
    })
  })

  test("again while it is on its way is waited for, and told as unknown under the first one's request", function* () {
    const waiting = yield* Effect.forkChild(Effect.flip(outcome(record({}))))
    yield* Time.adjust("1 second")
    expect(yield* Fiber.join(waiting)).toMatchObject({
      code: "outcome_unknown",
      extra: { requestId: "earlier", txHash: Make.word(2) }
    })
  })
})
