import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Code, catalogue } from "../../../src/application/failures/Catalogue.js"
import { kinds } from "../../../src/application/operate/Incidents.js"
import * as Program from "../../../src/hosts/cli/Program.js"
import { runbooks } from "../../../src/hosts/console/pages/Runbooks.js"
import * as Statuses from "../../../src/hosts/http/message/Statuses.js"

const read = (path: string) => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), "utf8")

const sources = {
  runbooks: JSON.stringify(runbooks),
  alerts: read("alerts.yaml"),
  board: read("grafana/castellan.json"),
  operations: read("operations.md")
}

describe("runbooks, alerts and the board", () => {
  it.effect("name only existing commands", () =>
    Effect.gen(function* () {
      const known = new Set((yield* Program.manual).map((words) => words.join(" ")))
      const named = [...sources.runbooks.matchAll(/`castellan ([a-z-]+) ?([a-z-]*)/g)].map(
        ([, group = "", command = ""]) => `${group} ${command}`.trim()
      )
      expect(named.length).toBeGreaterThan(5)
      expect(named.filter((words) => !known.has(words))).toEqual([])
    })
  )

  it("name only existing metrics", () => {
    const source = readFileSync(
      new URL("../../../src/application/observe/Metrics.ts", import.meta.url),
      "utf8"
    )
    const known = new Set(
      [...source.matchAll(/(?:counter|gauge|histogram)\(\s*"([a-z_]+)"/g)].map(
        ([, name]) => `castellan_${name}`
      )
    )
    for (const [name, text] of Object.entries(sources)) {
      const named = new Set(
        [...text.matchAll(/castellan_[a-z_]+/g)].map(([metric]) =>
          metric.replace(/_(?:bucket|sum|count)$/, "")
        )
      )
      expect([name, [...named].filter((metric) => !known.has(metric))]).toEqual([name, []])
    }
  })

  it("name only answers, fields and log lines that the service has", () => {
    const all = (pattern: RegExp) => [...sources.runbooks.matchAll(pattern)].map(([, ...found]) => found)
    const answers = all(/(\d{3}) `([a-z_]+)`/g)
    expect(answers.length).toBeGreaterThan(5)
    for (const [status, code = ""] of answers)
      expect([status, code]).toEqual([code in catalogue && String(Statuses.of(code as Code)), code])
    expect(all(/gets? (\d{3})(?! `)/g)).toEqual([])
    const schema = read("config.schema.json")
    const fields = all(/`networks\[\]\.([\w.]+)`/g).flatMap(([path = ""]) => path.split("."))
    expect(fields.filter((field) => !schema.includes(`"${field}": {`))).toEqual([])
    const lines = Object.values(runbooks)
      .flatMap(({ checks }) => checks.filter((check) => check.startsWith("The log: ")))
      .flatMap((check) => [...check.matchAll(/`([^`]+)`/g)].map(([, line = ""]) => line))
    expect(lines.length).toBeGreaterThan(1)
    const lanes = new URL("../../../src/application/lanes/", import.meta.url)
    const code = readdirSync(lanes, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts"))
      .map((path) => readFileSync(new URL(path, lanes), "utf8"))
      .join("\n")
    expect(lines.filter((line) => !code.includes(line))).toEqual([])
  })

  it("have a section and an alert for each kind of incident", () => {
    for (const kind of kinds) {
      expect(read("runbooks.md")).toContain(`{#${kind}}`)
      expect(sources.alerts).toContain(`runbook: "runbooks.md#${kind}"`)
    }
  })
})
