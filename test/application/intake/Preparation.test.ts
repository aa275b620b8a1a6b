import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as Preparation from "../../../src/application/intake/Preparation.js"
import * as Make from "../../support/journal/Make.js"

it.effect("an op that is signed after the chain has rested for an hour is not over when it is mined", () =>
  Effect.gen(function* () {
    const latest = {
      number: 7n,
      hash: Make.word(7),
      timestamp: 1_700_000_000,
      gasLimit: 30_000_000n,
      baseFeePerGas: 1n
    }
    const mined = latest.timestamp + 3_600
    yield* TestClock.setTime(mined * 1_000)
    expect(yield* Preparation.validUntil(latest)).toBe(mined + Preparation.signatureLifeSeconds)
  })
)
