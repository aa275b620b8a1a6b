import { describe, expect, it } from "vitest"
import * as Campaign from "../faults/support/Campaign.js"

/** Few seeds of the long run `npm run test:faults`; `npm run test:faults -- --seed N` runs one of them. */
const seeds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

describe("a service that is killed, behind a node that fails", () => {
  it("brings every accepted write to the chain exactly once, and every lane still works", async () => {
    const summary = await Campaign.run({
      seeds,
      // Runs after a process death on PostgreSQL wait for its lanes: they need no processor meanwhile.
      worlds: 3,
      seedsPerWorld: seeds.length,
      verbose: false,
      print: (line) => console.log(line)
    })
    for (const line of Campaign.summaryLines(summary)) console.log(line)
    expect(summary.broken, summary.broken.join("; ")).toEqual([])
    expect(summary.reports).toHaveLength(seeds.length)
    const wrong = summary.reports.flatMap((report) =>
      Campaign.wrongIn(report).map((text) => `seed ${report.seed}: ${text}`)
    )
    expect(wrong, wrong.join("; ")).toEqual([])
    // A run without faults would prove nothing.
    const sum = (of: (report: (typeof summary.reports)[number]) => number) =>
      summary.reports.reduce((all, report) => all + of(report), 0)
    expect(sum(({ works }) => works.success)).toBeGreaterThan(seeds.length * 3)
    expect(sum(({ restarts }) => restarts)).toBeGreaterThanOrEqual(seeds.length / 2)
    expect(sum(({ faults }) => [...faults.values()].reduce((all, count) => all + count, 0))).toBeGreaterThan(
      seeds.length
    )
  }, 1_200_000)
})
