import { describe, expect } from "@effect/vitest"
import * as ChainTime from "../../../src/application/chain/ChainTime.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const latest = { timestamp: 1_700_000_000 }

describe("the start of a signature's validity", () => {
  test("is the latest block on a chain whose clock is ahead", function* () {
    yield* Time.setTime((latest.timestamp - 3_600) * 1_000)
    expect(yield* ChainTime.present(latest)).toBe(latest.timestamp)
  })

  test("is this second on a chain without a recent block", function* () {
    yield* Time.setTime((latest.timestamp + 3_600) * 1_000 + 999)
    expect(yield* ChainTime.present(latest)).toBe(latest.timestamp + 3_600)
  })
})
