import { deflateRawSync, inflateRawSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Compact from "../../../src/adapters/sql/Compact.js"

const sample = JSON.stringify({
  txHash: "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f",
  eventName: "Transfer",
  operations: [{ salt: "a", walletCustody: 1 }],
  topics: Array.from(
    { length: 4 },
    () => "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
  )
})

describe.each([
  ["text", false],
  ["bytes", true]
] as const)("columns of hex and JSON, as %s,", (_, isBinary) => {
  const write = Compact.write(isBinary)

  it("are read as they were written, whatever their length", () => {
    const hex = fc.string({ unit: fc.constantFrom("0", "0", "0", "a", "7"), maxLength: 2_000 })
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          hex.map((digits) => `0x${digits}`)
        ),
        (text) => {
          const column = write(text)
          expect(column.length).toBeLessThanOrEqual(text.length)
          expect(Compact.read(column)).toBe(text)
          expect(Compact.isSame(column, write(text))).toBe(true)
          expect(Compact.isSame(column, write(`${text} `))).toBe(false)
          if (typeof column !== "string") expect(Compact.read(Compact.asText(column))).toBe(text)
        }
      )
    )
    for (const length of [31, 32, 127, 128, 65_536, 65_537, 1_000_000]) {
      const text = `"${"ж".repeat(length - 2)}"`
      expect(Compact.read(write(text))).toBe(text)
    }
  })

  it("that repeat themselves take less room", () => {
    const receipt = JSON.stringify(
      Array.from({ length: 20 }, (_, n) => ({ index: n, topics: ["0x".padEnd(66, "0")] }))
    )
    expect(write(receipt).length).toBeLessThan(receipt.length / 5)
  })
})

describe("columns of bytes", () => {
  it("that say what nearly all of them say take next to no room", () => {
    const summary = JSON.stringify({ httpStatus: 200, status: 1, elements: [{ index: 0, success: true }] })
    expect(Compact.write(true)(summary).length).toBeLessThan(16)
  })
})

describe("columns of text", () => {
  it("are those that the version before reads", () => {
    const column = String(Compact.write(false)(sample))
    expect(inflateRawSync(Buffer.from(column.slice(3), "base64")).toString()).toBe(sample)
    expect(column.slice(0, 3)).toBe("z1:")
  })
})

describe("columns of earlier versions", () => {
  it("are read: as they are, and deflated without a dictionary", () => {
    const text = JSON.stringify({ hashes: Array.from({ length: 9 }, () => "0x".padEnd(66, "ab")) })
    expect(Compact.read(text)).toBe(text)
    expect(Compact.read(`z1:${deflateRawSync(Buffer.from(text)).toString("base64")}`)).toBe(text)
  })

  it("are read with the dictionary that they were written with", () => {
    // Written once, and kept: what is in databases does not change with the program.
    const column = "z2:Q9FOhSSEowBHG96BjugkYhnSAUcEtZudw8iQ2FoA"
    expect(Compact.read(column)).toBe(sample)
  })

  it("of an event take little more room than the hash that it names", () => {
    const txHash = "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f"
    const event = JSON.stringify({ txHash, blockNumber: "117", confirmations: 1, elements: [0] })
    const column = Compact.write(true)(event)
    expect(column.length).toBeLessThan(65)
    expect(Compact.read(column)).toBe(event)
  })

  it("with hashes are read as they were written, whatever else they say", () => {
    const hash = fc
      .string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 })
      .map((digits) => `0x${digits}`)
    const other = fc.oneof(
      fc.constantFrom("0xg", "0xh", "0x", "g", "0xG", `0x${"Ab".repeat(32)}`, `0x${"ab".repeat(33)}`),
      fc.json()
    )
    fc.assert(
      fc.property(fc.array(hash, { maxLength: 3 }), (hashes) =>
        fc.assert(
          fc.property(
            fc.array(fc.oneof(other, fc.constantFrom("", ...hashes)), { maxLength: 9 }),
            (parts) => {
              const text = parts.join("")
              const column = Compact.write(true)(text)
              expect(Compact.read(column)).toBe(text)
              if (typeof column !== "string") expect(Compact.read(Compact.asText(column))).toBe(text)
            }
          ),
          { numRuns: 10 }
        )
      )
    )
  })
})
