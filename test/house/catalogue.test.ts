import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { type Code, catalogue } from "../../src/application/failures/Catalogue.js"
import * as Reasons from "../../src/application/failures/Reasons.js"
import * as Statuses from "../../src/hosts/http/message/Statuses.js"

const root = fileURLToPath(new URL("../../src", import.meta.url))

/** All of the source but the tables themselves. */
const source = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !/(?:Catalogue|Reasons)\.ts$/.test(path))
  .map((path) => readFileSync(`${root}/${path}`, "utf8"))
  .join("\n")

const codes = Object.keys(catalogue) as ReadonlyArray<Code>

const listed = Object.entries(Reasons.reasons)

describe("the reasons of refusals", () => {
  it("refusal reasons are the only messages of refusals", () => {
    const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) =>
      path.endsWith(".ts")
    )
    const using = (pattern: RegExp) =>
      files.filter((path) => pattern.test(readFileSync(`${root}/${path}`, "utf8"))).sort()
    // Messages of failures made earlier here, or stored in the journal.
    expect(using(/Reasons\.known\(/)).toEqual([
      "application/answers/Answer.ts",
      "application/failures/Delays.ts",
      "application/failures/Elements.ts",
      "application/prepare/given/ExternalProofs.ts"
    ])
    expect(using(/\bas (?:Reasons\.)?Text\b/)).toEqual(["application/failures/Reasons.ts"])
    expect(using(/new Unprocessable\(/)).toEqual(["application/failures/Failure.ts"])
  })

  it.each(listed)("%s is used by some part of the service", (name) => {
    expect(source).toContain(`"${name}"`)
  })

  it("refusal reasons are unique single lines, with free text only from third parties", () => {
    const texts = listed.map(([, { code, text }]) => `${code}: ${text}`)
    expect(new Set(texts).size).toBe(texts.length)
    const free = texts.flatMap((text) => text.match(/\{(?:reason|message|problem|text)\}/g) ?? [])
    expect(new Set(free)).toEqual(new Set(["{reason}", "{message}", "{problem}", "{text}"]))
    for (const text of texts) expect(text).toMatch(/^[^\n]*[^.\n]$/)
  })

  it("refusal reasons show values in one line of bounded length", () => {
    const said = Reasons.text("nodeUnavailable", { message: `bad\nthing\u202e${"x".repeat(5_000)}` })
    expect(said).toMatch(/^the node is unavailable: bad thing x+\.\.\.$/)
    expect(said.length).toBeLessThan(1_100)
  })
})

describe("the catalogue of errors", () => {
  it.each(codes)("%s is answered by some part of the service", (code) => {
    expect(source).toContain(`"${code}"`)
  })

  it("the catalogue has a unique message, a condition and a remedy for each code", () => {
    for (const { remedy, text, when } of Object.values(catalogue)) {
      expect(text).toMatch(/^[^.]+$/)
      expect(when).toMatch(/\.$/)
      expect(remedy).toMatch(/\.$/)
    }
    const texts = Object.values(catalogue).map(({ text }) => text)
    expect(new Set(texts).size).toBe(texts.length)
  })

  it("the catalogue has the interface's exact messages", () => {
    const texts = codes.map((code) => `${Statuses.of(code)} ${catalogue[code].text}`)
    for (const text of [
      "400 invalid salt format",
      "400 invalid wallet custody type",
      "400 invalid function signature",
      "400 invalid rpc",
      "401 invalid client ID: client ID incorrect",
      "401 version not found: HSM version does not exist",
      "401 asset not supported: MPC asset unavailable",
      "422 insufficient funds",
      "422 account already exists",
      "422 internal application error",
      "422 transaction not confirmed in time",
      "429 rate limit exceeded"
    ])
      expect(texts).toContain(text)
  })
})
