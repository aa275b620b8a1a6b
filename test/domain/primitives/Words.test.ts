import { describe, expect, it } from "@effect/vitest"
import { AbiCoder, Interface } from "ethers"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import { address, bytes32, forAll, hex, uint } from "../generators.js"

const coder = AbiCoder.defaultAbiCoder()

describe("Words", () => {
  it("words encode nested dynamic values as ethers does, and read them back", () => {
    forAll(
      [uint(256), fc.boolean(), address, bytes32, hex(), fc.array(address), fc.array(hex(70))],
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
  })

  it("reduces an integer to its width instead of spilling over", () => {
    expect(Words.uint((1n << 48n) + 5n, 48)).toBe(Words.uint(5n))
    expect(Words.uint(1n << 256n)).toBe(Words.uint(0n))
    expect(Words.uint(-1n)).toBe("f".repeat(64))
  })

  it("words encode a static tuple in place, and an address in lower case", () => {
    forAll([uint(256), bytes32, hex(), address], (n, w, bytes, a) => {
      const fixed = Words.tuple([Words.uint(n), Words.bytes32(w), Words.bool(true)])
      expect(Words.encode([fixed, Words.bytes(bytes), Words.address(a)])).toBe(
        coder.encode(["(uint256,bytes32,bool)", "bytes", "address"], [[n, w, true], bytes, a])
      )
      expect(`0x${Words.address(a)}`).toBe(coder.encode(["address"], [a]))
    })
  })

  it("words encode a call as ethers does", () => {
    const abi = new Interface(["function f(address,bytes,uint48)"])
    forAll([address, hex(), uint(48)], (a, bytes, n) => {
      const selector = Hex.unsafe(abi.getFunction("f")?.selector ?? "")
      expect(Words.call(selector, [Words.address(a), Words.bytes(bytes), Words.uint(n, 48)])).toBe(
        abi.encodeFunctionData("f", [a, bytes, n])
      )
    })
  })

  const size = fc.oneof(
    fc.nat(400).map(BigInt),
    fc.constantFrom(0n, 1n, 31n, 32n, 33n, 64n, 128n, (1n << 64n) - 1n, (1n << 256n) - 1n),
    uint(256)
  )
  const wild = fc.oneof(
    hex(300),
    fc.array(size).map((words) => Hex.unsafe(`0x${words.map((word) => Words.uint(word)).join("")}`))
  )

  it("words read any bytes without failing or growing", () => {
    forAll([wild, fc.nat(400)], (data, at) => {
      const cursor = Words.read(data)
      const { count, elements } = Words.readArray(cursor, at)
      expect(count * 32).toBeLessThanOrEqual(Hex.size(data))
      expect(elements.start).toBeLessThanOrEqual(2 * Hex.size(data) + 32)
      expect(Hex.size(Words.readBytes(cursor, at))).toBeLessThanOrEqual(Hex.size(data))
      expect(Words.readUint(Words.readTail(cursor, at), 0)).toBeGreaterThanOrEqual(0n)
    })
  })

  it("words read zeros behind the end, and clamp offsets, lengths and numbers to it", () => {
    const least = (value: bigint, end: number) => Math.min(Number(value), end)
    forAll(
      [wild, fc.nat(400), fc.nat(400)],
      (data, first, second) => {
        const buffer = Buffer.from(data.slice(2), "hex")
        const [end, long] = [buffer.length, Buffer.concat([buffer, Buffer.alloc(2_000)])]
        const wordAt = (at: number) => BigInt(`0x${long.subarray(at, at + 32).toString("hex")}`)
        // The offset at `first` leads to a tuple, that at `second` in this one to a dynamic part.
        const inner = Words.readTail(Words.read(data), first)
        const start = least(wordAt(first), end)
        expect(inner.start).toBe(start)
        expect(Words.readUint(inner, second)).toBe(wordAt(start + second))
        const part = start + least(wordAt(start + second), end)
        const length = least(wordAt(part), end)
        expect(Words.readBytes(inner, second)).toBe(
          `0x${buffer.subarray(part + 32, part + 32 + length).toString("hex")}`
        )
        const { count, elements } = Words.readArray(inner, second)
        expect(elements.start).toBe(part + 32)
        expect(count).toBe(Math.min(length, Math.max(0, Math.floor((end - part - 32) / 32))))
      },
      { numRuns: 500 }
    )
  })
})
