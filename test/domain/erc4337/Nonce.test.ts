import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import { uint } from "../generators.js"

describe("Nonce", () => {
  it("is its key and its sequence", () => {
    fc.assert(
      fc.property(uint(192), uint(64), (key, sequence) => {
        const nonce = Nonce.make(key, sequence)
        expect(nonce).toBe(key * 2n ** 64n + sequence)
        expect(Nonce.keyOf(nonce)).toBe(key)
        expect(Nonce.sequenceOf(nonce)).toBe(sequence)
      })
    )
  })

  it("makes every uint256 out of its own parts", () => {
    fc.assert(
      fc.property(uint(256), (nonce) => {
        expect(Nonce.make(Nonce.keyOf(nonce), Nonce.sequenceOf(nonce))).toBe(nonce)
      })
    )
  })

  it("never lets a sequence run into the key", () => {
    expect(Nonce.make(3n, 1n << 64n)).toBe(Nonce.make(3n, 0n))
  })

  it("key ranges follow each other without a gap, from 0 to 65,535", () => {
    const ranges = [Nonce.serviceKeys, Nonce.handedOutKeys, Nonce.anonymousKeys]
    expect(ranges.map(({ to }) => to + 1n)).toEqual([16n, 32_768n, 65_536n])
    expect(ranges.map(({ from }) => from)).toEqual([0n, 16n, 32_768n])
  })
})
