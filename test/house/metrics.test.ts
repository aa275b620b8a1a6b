import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Metrics from "../../src/application/observe/Metrics.js"

const root = new URL("../..", import.meta.url)
const text = (path: string) => readFileSync(new URL(path, root), "utf8")

const names = Object.keys(Metrics)

/** Names of all measured families, read from the module's own text. */
const measured = new Set(
  [
    ...text("src/application/observe/Metrics.ts").matchAll(
      /=>?\s+(?:counter|gauge|histogram)\(\s*"([a-z_]+)"/g
    )
  ].map(([, name]) => `castellan_${name}`)
)

const mentioned = (page: string): ReadonlySet<string> =>
  new Set(
    [...text(page).matchAll(/castellan_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ""))
  )

describe("the figures", () => {
  it("metrics are all in the module", () => {
    expect(measured.size).toBe(names.filter((name) => name !== "count" && name !== "note").length)
    expect(measured.size).toBeGreaterThan(10)
  })

  it("metrics are all documented for the operator, and no others", () => {
    expect([...mentioned("docs/operations.md")].sort()).toEqual([...measured].sort())
  })

  it("metrics are those on the dashboard", () => {
    expect([...mentioned("docs/grafana/castellan.json")].filter((name) => !measured.has(name))).toEqual([])
  })
})
