import { describe, expect } from "@effect/vitest"
import * as ChainTime from "../../../src/application/chain/ChainTime.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const latest = { timestamp: 1_700_000_000 }

describe("what is signed now is good from", () => {
  test("the latest block on, of a chain whose clock is ahead", function* () {
    yield* Time.setTime((latest.timestamp - 3_600) * 1_000)
    expect(yield* ChainTime.present(latest)).toBe(latest.timestamp)
  })

  test("this second on, of a chain that has made no block for long", function* () {
    yield* Time.setTime((latest.timestamp + 3_600) * 1_000 + 999)
    expect(yield* ChainTime.present(latest)).toBe(latest.timestamp + 3_600)
  })
})
