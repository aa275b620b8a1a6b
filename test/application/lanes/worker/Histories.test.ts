import { describe, expect, it } from "@effect/vitest"
import * as History from "../../../support/worker/History.js"

const endings = (count: number, options: History.Options, from = 0) =>
  Array.from({ length: count }, (_, at) => ({ seed: from + at, ...History.run(from + at, options) }))
const seedsOf = (all: ReturnType<typeof endings>, is: (ending: History.Ending) => boolean) =>
  all.filter(is).map(({ seed }) => seed)

describe("histories of a lane", () => {
  it("do nothing twice and misreport nothing, with foreign users of the key, stops and reorganisations", () => {
    const all = endings(150, { restores: false, directs: true })
    expect(seedsOf(all, ({ twice }) => twice.length > 0)).toEqual([])
    expect(seedsOf(all, ({ misreported }) => misreported.length > 0)).toEqual([])
    expect(all.reduce((sum, { done }) => sum + done, 0)).toBeGreaterThan(500)
  })

  it("do nothing twice and misreport nothing after an old backup was restored", () => {
    const all = endings(150, { restores: true, directs: false })
    expect(seedsOf(all, ({ twice }) => twice.length > 0)).toEqual([])
    expect(seedsOf(all, ({ misreported }) => misreported.length > 0)).toEqual([])
    expect(seedsOf(all, ({ isRestored }) => isRestored).length).toBeGreaterThan(75)
  })

  it("do things twice, or misreport them, if unknown nonces hold nothing up", () => {
    const all = endings(400, { restores: true, directs: false, ignoresUnknown: true })
    const bad = seedsOf(all, ({ misreported, twice }) => twice.length + misreported.length > 0)
    expect(bad.length).toBeGreaterThan(0)
  })

  it("end: almost no request is open after a calm time", () => {
    const all = endings(60, { restores: false, directs: true })
    const open = all.reduce((sum, ending) => sum + ending.open, 0)
    expect(open).toBeLessThan(all.reduce((sum, { done }) => sum + done, 0) / 10)
  })
})
