import { describe, expect } from "@effect/vitest"
import * as Snapshot from "../../../src/application/prepare/Snapshot.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const latest = {
  number: 7n,
  hash: Make.word(7),
  timestamp: 1_700_000_000,
  gasLimit: 30_000_000n,
  baseFeePerGas: 1n
}

describe("after the chain has rested", () => {
  test("for an hour, an op signed now is still valid when it is mined", function* () {
    const mined = latest.timestamp + 3_600
    yield* Time.setTime(mined * 1_000)
    expect(yield* Snapshot.validUntil(latest)).toBe(mined + Snapshot.signatureLifeSeconds)
  })

  test("for half an hour, so is a creation", function* () {
    const mined = latest.timestamp + 1_800
    yield* Time.setTime(mined * 1_000)
    expect(yield* Snapshot.deployableUntil(latest)).toBe(mined + Snapshot.signatureLifeSeconds)
  })

  test("for a day, a creation is valid no longer than the factory allows at the latest block", function* () {
    yield* Time.setTime((latest.timestamp + 86_400) * 1_000)
    expect(yield* Snapshot.deployableUntil(latest)).toBe(latest.timestamp + 3_600)
  })
})
