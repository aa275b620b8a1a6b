import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Nonce from "../../../src/domain/op/Nonce.js"
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

  it("gives no key to both the service and the ops that are handed out", () => {
    expect(Nonce.serviceKeys).toEqual(Array.from({ length: 16 }, (_, key) => BigInt(key)))
    expect(Nonce.handedOutKeys).toEqual({ first: 16n, last: 65_535n })
    fc.assert(
      fc.property(uint(192), (key) => {
        expect(Nonce.isServiceKey(key)).toBe(Nonce.serviceKeys.includes(key))
        expect(Nonce.isServiceKey(key) && Nonce.isHandedOutKey(key)).toBe(false)
      })
    )
    expect([16n, 65_535n].every(Nonce.isHandedOutKey)).toBe(true)
    expect([-1n, 15n, 65_536n].some(Nonce.isHandedOutKey)).toBe(false)
    expect([-1n, 16n].some(Nonce.isServiceKey)).toBe(false)
  })
})
