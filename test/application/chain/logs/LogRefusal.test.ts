import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type BlockRange, cure, sizeOf } from "../../../../src/application/chain/logs/LogRefusal.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import * as Work from "../../../support/Work.js"
import { vendors, type Wording } from "./Vendors.js"

const origin = "https://node.example"
const range: BlockRange = { from: 28_000_000n, to: 28_099_999n }
const rejected = ({ code, message }: Wording) =>
  new ChainRpcError({ reason: "rejected", origin, message, rpcCode: code })

describe("a refusal of logs", () => {
  it.each(vendors)("with a block limit by $name is understood", ({ blocks, name }) => {
    const remedy = cure(rejected(blocks({ ...range, limit: 10_000 })), range)
    const silent = ["Ankr", "Base"].includes(name)
    expect(remedy?.size).toBe(silent ? 50_000n : 10_000n)
    expect(remedy?.where).toBe("everywhere")
  })

  it.each(vendors)("affects only this range when $name limits results", ({ results }) => {
    const remedy = cure(rejected(results({ ...range, limit: 10_000 })), range)
    expect(remedy).not.toBeNull()
    expect(remedy?.where).toBe("here")
    expect(remedy?.size).toBeGreaterThanOrEqual(6_250n)
    expect(remedy?.size).toBeLessThanOrEqual(50_000n)
  })

  it.each([
    ["https://n: no complete answer within 15000 ms", "unreachable"],
    ["https://n: the answer is larger than 16777216 bytes", "notAnRpc"],
    ["https://n: the answer was cut off", "unreachable"],
    ["https://n: HTTP status 504", "unreachable"],
    ["https://n: HTTP status 413", "unreachable"]
  ] as const)("without a word (%s) is met with much smaller parts", (message, reason) => {
    expect(cure(new ChainRpcError({ reason, origin, message }), range)).toEqual({
      where: "here",
      size: 12_500n
    })
  })

  it.each([
    ["eth_getLogs is limited to a 10000 block range; upgrade your plan for archive access", 10_000n],
    ["block range limit exceeded (max 10000): use an API key of a paid plan", 10_000n],
    ["query exceeds max block range 10000, it would use too many credits", 10_000n],
    ["up to 10000 blocks without authentication", 10_000n],
    ["more than 10000 results: archive queries cost credits", 50_000n]
  ])("with a limit is followed, whatever it says of the plan: %s", (message, size) => {
    const error = new ChainRpcError({ reason: "rejected", origin, message, rpcCode: -32_000 })
    expect(cure(error, range)?.size).toBe(size)
  })

  it.each([
    ["rejected", "Archive requests require a paid plan: block range too old"],
    ["rejected", "the method eth_getLogs does not exist/is not available"],
    ["rejected", "invalid api key"],
    ["rejected", "pruned history unavailable for these blocks"],
    ["rejected", "block range extends beyond current head block"],
    ["rejected", "daily request quota of logs exceeded"],
    ["rejected", "execution aborted"],
    ["rejected", ""],
    ["unreachable", "https://n: the connection failed (ECONNREFUSED)"],
    ["unreachable", "https://n: no connection within 5000 ms"],
    ["unreachable", "https://n: HTTP status 403"],
    ["notAnRpc", "https://n: it is not JSON"],
    ["rateLimited", "too many requests, block range"],
    ["forbidden", "block range too large"]
  ] as const)("has no cure in fewer blocks: %s, %s", (reason, message) => {
    expect(cure(new ChainRpcError({ reason, origin, message }), range)).toBeNull()
  })

  it("for one block has no cure", () => {
    const one = { from: 5n, to: 5n }
    for (const { blocks, results } of vendors)
      for (const wording of [blocks({ ...one, limit: 1 }), results({ ...one, limit: 1 })])
        expect(cure(rejected(wording), one)).toBeNull()
  })

  /** The remedy for this message about 100,000 blocks. */
  const remedyOf = (message: string, blocks = range) => cure(rejected({ code: -32_000, message }), blocks)
  const hex = (block: bigint) => `0x${block.toString(16)}`

  it("for its result count, with a suggested range, uses that range unless it is invalid", () => {
    for (const [offer, size] of [
      [`[${hex(range.from)}, ${hex(range.from + 19_999n)}]`, 20_000n],
      [`range ${range.from}-${range.from + 19_999n}`, 20_000n],
      [`range 1-5, [${range.from}, ${range.from + 19_999n}]`, 20_000n],
      [`[${range.from}, ${range.to - 1n}]`, 99_999n],
      // No more than sixteen parts.
      [`[${range.from}, ${range.from}]`, 6_250n],
      [`[${range.from + 1n}, ${range.from + 19_999n}]`, 50_000n],
      [`[${range.from}, ${range.to}]`, 50_000n],
      [`[${range.from}, ${range.from - 1n}]`, 50_000n]
    ] as const)
      expect(remedyOf(`more than 10000 results, try ${offer}`), offer).toEqual({ where: "here", size })
    const offer = `[${hex(range.from)}, ${hex(range.from + 1_999n)}]`
    expect(remedyOf(`block range is too wide, try ${offer}`)).toEqual({ where: "everywhere", size: 2_000n })
  })

  it.each([
    ["is the largest of several", "block range: 2000 free, 10,000 paid", 10_000n],
    ["is the largest of several, wherever it stands", "block range: 10,000 paid, 2000 free", 10_000n],
    ["is one", "block range above 1", 1n],
    ["has a unit", "block range above 2K", 2_000n],
    ["is grouped by apostrophes", "block range above 10'000", 10_000n],
    ["does not repeat the query", "block range 28000000-28099999 of 100000 (99999) is above 500", 500n],
    ["exceeds the query", "block range above 100000, 200000 at most", 50_000n],
    ["counts no results, bytes or seconds", "block range: 800 logs, 30 s, 10 mb", 50_000n],
    ["is not nothing", "block range above 0", 50_000n],
    ["belongs to a longer token", "block range, see v2.300 and #400", 50_000n]
  ])("with a limit, which %s, applies it to every range", (_, message, size) => {
    expect(remedyOf(message)?.size).toBe(size)
  })

  it("for too many blocks is understood as a limit", () => {
    const error = new ChainRpcError({ reason: "unsupported", origin, message: "block range above 5000" })
    expect(cure(error, range)).toEqual({ where: "everywhere", size: 5_000n })
  })

  it("with the code of an excessive query needs no message", () => {
    expect(cure(rejected({ code: -32_005, message: "no" }), range)).toEqual({ where: "here", size: 50_000n })
    expect(cure(rejected({ code: -32_602, message: "no" }), range)).toEqual({ where: "here", size: 50_000n })
    expect(cure(rejected({ code: -32_000, message: "no" }), range)).toBeNull()
  })

  it("for too many blocks without a number leads to single ones, and with words to halves that cover all of them", () => {
    const silent = new ChainRpcError({ reason: "unreachable", origin, message: "HTTP status 504" })
    expect(cure(silent, { from: 1n, to: 7n })?.size).toBe(1n)
    expect(cure(silent, { from: 1n, to: 16n })?.size).toBe(2n)
    expect(remedyOf("too many results", { from: 1n, to: 7n })?.size).toBe(4n)
    expect(remedyOf("too many results", { from: 1n, to: 2n })?.size).toBe(1n)
  })

  it("leads to smaller parts, whatever the node writes", () => {
    const words =
      "block range,max,results,[0x5, 0x6],range 5-6,range 5-99999,[5,5],0,-1,1e9,0x0,99999999999999999999,2K,0.5,logs"
    const word = fc.oneof(fc.constantFrom(...words.split(",")), fc.nat().map(String))
    const text = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.array(word, { maxLength: 12 }).map((said) => said.join(" "))
    )
    fc.assert(
      fc.property(
        text,
        fc.bigInt(2n, 10n ** 6n),
        fc.constantFrom(-32_005, -32_602, -32_000),
        (message, size, code) => {
          const asked = { from: 5n, to: 4n + size }
          const remedy = cure(rejected({ code, message }), asked)
          if (remedy === null) return
          expect(remedy.size).toBeGreaterThanOrEqual(1n)
          expect(remedy.size).toBeLessThan(sizeOf(asked))
        }
      ),
      { numRuns: 500 }
    )
  })

  it("is judged with bounded work, whatever its text", () => {
    const work = Work.of(() => {
      for (const part of ["1,000", "[0x1 ", "range 1 ", "method ", "1".repeat(16), ", "])
        cure(rejected({ code: -32_005, message: part.repeat(100_000 / part.length) }), range)
    })
    expect(work).toBeLessThan(2_000)
  })
})
