import { describe, expect, it } from "@effect/vitest"
import { encodeRlp } from "ethers/utils"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Rlp from "../../../src/domain/primitives/Rlp.js"
import { forAll, hex } from "../generators.js"

describe("RLP", () => {
  it("RLP of strings of lengths around the prefix sizes equals ethers", () => {
    for (const length of [0, 1, 2, 54, 55, 56, 57, 255, 256, 257, 4_095, 4_096, 65_535, 65_536]) {
      const item = Hex.unsafe(`0x${"ab".repeat(length)}`)
      expect(Rlp.encode([item]), `${length}`).toBe(encodeRlp([item]))
    }
  })

  it("RLP of a single byte is the byte up to 0x7f, and has a prefix from 0x80 on", () => {
    for (let byte = 0; byte < 256; byte++) {
      const item = Hex.fromBytes(Uint8Array.of(byte))
      expect(Rlp.encode([item]), item).toBe(encodeRlp([item]))
    }
  })

  it("RLP of any list of strings and empty lists equals ethers", () => {
    const items = fc.array(fc.oneof({ weight: 4, arbitrary: hex(80) }, fc.constant([] as const)))
    forAll([items], (list) => {
      expect(Rlp.encode(list)).toBe(encodeRlp(list.map((item) => (typeof item === "string" ? item : []))))
    })
  })
})
