import * as Result from "effect/Result"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as WalletReader from "../../../src/domain/wallet/WalletReader.js"
import { forAll } from "../generators.js"

const hex = (min: number, max: number) =>
  fc.uint8Array({ minLength: min, maxLength: max }).map((bytes) => Hex.fromBytes(bytes))
const sight = fc.record({
  codeHash: hex(32, 32).map((hash) => Hex.unsafe32(hash)),
  success: fc.boolean(),
  data: hex(0, 100)
})
const word = (value: number) => value.toString(16).padStart(64, "0")
const returned = (sights: ReadonlyArray<WalletReader.Sight>): Hex.Hex =>
  Hex.unsafe(
    `0x${sights
      .map(({ codeHash, data, success }) => {
        const digits = data.slice(2)
        const whole = Math.ceil(digits.length / 64) * 64
        return codeHash.slice(2) + word(success ? 1 : 0) + word(digits.length / 2) + digits.padEnd(whole, "0")
      })
      .join("")}`
  )

describe("wallet reader results", () => {
  it("wallet reader results are decoded for exactly the requested addresses", () => {
    forAll([fc.array(sight, { maxLength: 8 })], (sights) => {
      expect(Result.getOrThrow(WalletReader.decode(returned(sights), sights.length))).toEqual(sights)
      expect(Result.isFailure(WalletReader.decode(returned(sights), sights.length + 1))).toBe(true)
    })
  })

  it("wallet reader results are refused when cut off, too long or of huge lengths", () => {
    const [one] = fc.sample(sight, { numRuns: 1, seed: 1 })
    const whole = returned(one === undefined ? [] : [one])
    const huge = Hex.unsafe(`0x${"00".repeat(64)}${"ff".repeat(32)}`)
    for (const other of [
      Hex.empty,
      Hex.slice(whole, 0, Hex.size(whole) - 1),
      Hex.concat(whole, Hex.unsafe("0x00")),
      huge
    ])
      expect(Result.isFailure(WalletReader.decode(other, 1))).toBe(true)
  })

  it("an address without code is absent, used or not", () => {
    const at = (codeHash: string) =>
      WalletReader.isAbsent({ codeHash: Hex.unsafe32(codeHash), success: true, data: Hex.empty })
    expect([
      at(`0x${"00".repeat(32)}`),
      at(Keccak.hash(Hex.empty)),
      at(Keccak.hash(Hex.unsafe("0x00")))
    ]).toEqual([true, true, false])
  })
})
