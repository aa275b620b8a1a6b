import { existsSync, readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Reference from "../../contracts/Reference.js"
import * as Coverage from "../solidity/Coverage.js"
import * as Forge from "../solidity/Forge.js"

const root = new URL("../../", import.meta.url)
const deployed = Coverage.deployed

interface Entry {
  readonly type: string
  readonly name?: string
}

const abiOf = (name: string): ReadonlyArray<Entry> =>
  JSON.parse(readFileSync(new URL(`contracts/artifacts/${name}.json`, root), "utf8")).abi

describe("the tests in Solidity", () => {
  it.each(deployed)("call every external function of %s, and have a file for its constructor", (name) => {
    const text = [`test/solidity/${name}/`, "test/solidity/support/"]
      .map((folder) => new URL(folder, root))
      .flatMap((folder) => readdirSync(folder).map((file) => readFileSync(new URL(file, folder), "utf8")))
      .join("\n")
    const absent = abiOf(name).filter(({ name: f = "", type }) => {
      if (type === "function") return !new RegExp(`\\.${f}[({,]`).test(text)
      const isCode = type === "constructor" || type === "receive"
      return isCode && !existsSync(new URL(`test/solidity/${name}/${type}.t.sol`, root))
    })
    expect(absent).toEqual([])
  })

  it("tests are counted by forge's report, and a truncated report is a failure", () => {
    const report = [
      "[PASS] test_a() (gas: 1)",
      "[PASS] testFuzz_b(bytes32,(uint8,bytes)[]) (runs: 48, μ: 1, ~: 1)",
      "[PASS] invariant_c() (runs: 24, calls: 2400, reverts: 0)",
      "Ran 3 test suites in 1.00s (2.00s CPU time): 3 tests passed, 0 failed, 0 skipped (3 total tests)"
    ]
    const run = Forge.read(report.join("\n"))
    expect(run).toMatchObject({ ok: true, passed: 3, failed: 0, fuzzRuns: 48, invariantCalls: 2400 })
    expect(Forge.read(report.slice(0, 3).join("\n")).ok).toBe(false)
  })

  it("Solidity tests leave only known gaps, and no stale reasons", () => {
    const lcov = "SF:contracts/src/A.sol\nDA:1,2\nDA:2,0\nBRDA:3,0,0,-\nBRDA:3,0,1,4\nend_of_record\n"
    const gaps = Coverage.gaps(lcov, (_, line) => `line ${line}`)
    const gap = (line: number, what: "line" | "branch") => ({
      file: "contracts/src/A.sol",
      line,
      text: `line ${line}`,
      what
    })
    expect(gaps).toEqual([gap(2, "line"), gap(3, "branch")])
    const known = { file: "contracts/src/A.sol", text: "line 2", what: "line", reason: "assembly" } as const
    const stale = { ...known, text: "line 9" }
    expect(Coverage.compare(gaps, [known, stale])).toEqual({ fresh: [gap(3, "branch")], stale: [stale] })
  })
})

describe("the reference of the contracts", () => {
  it("has a text for every contract, function, event, error, struct, parameter and result, and is up to date", () => {
    const contracts = Reference.contracts()
    expect(Reference.missing(contracts)).toEqual([])
    expect(readFileSync(new URL(Reference.path, root), "utf8")).toBe(Reference.page(contracts))
  }, 240_000)
})
