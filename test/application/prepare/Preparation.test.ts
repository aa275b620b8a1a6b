import { describe, expect, it } from "vitest"
import * as Preparation from "../../../src/application/prepare/Preparation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"

const now = 1_700_000_000_000
const chainTime = 1_699_999_990

describe("an op is signed as it was prepared", () => {
  it("for five minutes, despite a longer window", () => {
    expect(Preparation.goodUntil(now, chainTime, 0)).toBe(now + 300_000)
    expect(Preparation.goodUntil(now, chainTime, chainTime + 600)).toBe(now + 300_000)
  })

  it("no longer than its window by the chain's clock", () => {
    expect(Preparation.goodUntil(now, chainTime, chainTime + 20)).toBe(now + 20_000)
    expect(Preparation.goodUntil(now, chainTime, chainTime - 1)).toBe(now)
  })
})

describe("the return data of a call", () => {
  const of = (bytes: number) => Hex.unsafe(`0x${"ab".repeat(bytes)}`)

  it("is kept up to 16 KiB; a longer value is dropped", () => {
    expect(Preparation.kept(of(16_384))).toBe(of(16_384))
    expect(Preparation.kept(of(16_385))).toBe(null)
  })
})
