import { describe, expect, it } from "@effect/vitest"
import * as Counts from "../support/Counts.js"

const report = (...files: ReadonlyArray<unknown>) => Counts.read(() => JSON.stringify({ testResults: files }))
const test = (status: string, reason?: string) => ({ fullName: `a ${status} test`, status, meta: { reason } })

describe("the counts of a test run", () => {
  it("are those of the report", () => {
    const file = {
      name: "a",
      status: "failed",
      assertionResults: [test("passed"), test("passed"), test("failed")]
    }
    expect(report(file)).toEqual({ passed: 2, failed: 1, skipped: [] })
  })

  it("name what was skipped, and why", () => {
    const assertionResults = [test("pending", "no browser here"), test("todo")]
    expect(report({ name: "a", status: "passed", assertionResults }).skipped).toEqual([
      { name: "a pending test", reason: "no browser here" },
      { name: "a todo test", reason: "no reason given" }
    ])
  })

  it("have a failure for a file that did not get as far as its tests", () => {
    expect(report({ name: "a", status: "failed", assertionResults: [] }).failed).toBe(1)
  })

  it("tell how many exchanges with the service were held against its document", () => {
    const lines = '{"requests":2,"answers":3}\n{"requests":0,"answers":0}\n{"requests":1,"answers":1}\n'
    expect(Counts.exchanges(() => lines)).toEqual({ requests: 3, answers: 4 })
    const absent = () => {
      throw new Error("ENOENT")
    }
    expect(Counts.exchanges(absent)).toEqual({ requests: 0, answers: 0 })
  })

  it("have a failure when there is no report", () => {
    const absent = () => {
      throw new Error("ENOENT")
    }
    expect(Counts.read(absent)).toEqual({ passed: 0, failed: 1, skipped: [] })
    expect(Counts.read(() => "{").failed).toBe(1)
  })

  it("add up over the engines, and a run in Solidity that left no counts is a failure", () => {
    const solidity = Counts.readSolidity(() => '{"passed":3,"failed":1}')
    expect(Counts.add(solidity, { passed: 2, failed: 0, skipped: [] })).toEqual({
      passed: 5,
      failed: 1,
      skipped: []
    })
    expect(Counts.readSolidity(() => "{").failed).toBe(1)
  })
})
