import { describe, expect, it } from "@effect/vitest"
import { AbiCoder } from "ethers"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import { address, bytes32, hex, uint } from "../generators.js"

const coder = AbiCoder.defaultAbiCoder()

describe("Words", () => {
  it("encodes nested dynamic values as ethers does, and reads them back", () => {
    fc.assert(
      fc.property(
        uint(256),
        fc.boolean(),
        address,
        bytes32,
        hex(),
        fc.array(address),
        fc.array(hex(70)),
        (n, b, a, w, bytes, list, items) => {
          const encoded = Words.encode([
            Words.uint(n),
            Words.bool(b),
            Words.dynamic([Words.bytes(bytes), Words.address(a), Words.array(list.map(Words.address))]),
            Words.bytes32(w),
            Words.array(items.map(Words.bytes))
          ])
          expect(encoded).toBe(
            coder.encode(
              ["uint256", "bool", "(bytes,address,address[])", "bytes32", "bytes[]"],
              [n, b, [bytes, a, list], w, items]
            )
          )
          const cursor = Words.read(encoded)
          const inner = Words.readTail(cursor, 64)
          const { count, elements } = Words.readArray(cursor, 128)
          expect(Words.readUint(cursor, 0)).toBe(n)
          expect(Words.readBytes(inner, 0)).toBe(bytes)
          expect(Words.readAddress(inner, 32)).toBe(a)
          expect(Words.readArray(inner, 64).count).toBe(list.length)
          expect(Words.readBytes32(cursor, 96)).toBe(w)
          expect(Array.from({ length: count }, (_, i) => Words.readBytes(elements, 32 * i))).toEqual(items)
        }
      )
    )
  })

  it("reduces an integer to its width instead of spilling over", () => {
    expect(Words.uint((1n << 48n) + 5n, 48)).toBe(Words.uint(5n))
    expect(Words.uint(1n << 256n)).toBe(Words.uint(0n))
    expect(Words.uint(-1n)).toBe("f".repeat(64))
  })

  it("reads whatever bytes there are without failing or growing", () => {
    const wild = fc.oneof(
      hex(300),
      fc
        .array(
          fc.oneof(
            fc.constantFrom(0n, 1n, 31n, 32n, 33n, 64n, 128n, (1n << 64n) - 1n, (1n << 256n) - 1n),
            uint(256)
          )
        )
        .map((words) => Hex.unsafe(`0x${words.map((word) => Words.uint(word)).join("")}`))
    )
    fc.assert(
      fc.property(wild, fc.nat(400), (data, at) => {
        const cursor = Words.read(data)
        const { count, elements } = Words.readArray(cursor, at)
        expect(count * 32).toBeLessThanOrEqual(Hex.size(data))
        expect(elements.start).toBeLessThanOrEqual(2 * Hex.size(data) + 32)
        expect(Hex.size(Words.readBytes(cursor, at))).toBeLessThanOrEqual(Hex.size(data))
        expect(Words.readUint(Words.readTail(cursor, at), 0)).toBeGreaterThanOrEqual(0n)
      })
    )
  })
})
