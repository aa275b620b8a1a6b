import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { type Code, catalogue } from "../../src/application/request/Catalogue.js"
import * as Statuses from "../../src/hosts/http/message/Statuses.js"

const root = fileURLToPath(new URL("../../src", import.meta.url))

/** All of the source but the catalogue itself. */
const source = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !path.endsWith("Catalogue.ts"))
  .map((path) => readFileSync(`${root}/${path}`, "utf8"))
  .join("\n")

const codes = Object.keys(catalogue) as ReadonlyArray<Code>

describe("the catalogue of errors", () => {
  it.each(codes)("%s is answered by some part of the service", (code) => {
    expect(source).toContain(`"${code}"`)
  })

  it("has a text, a condition and a remedy for each, no two texts alike", () => {
    for (const { remedy, text, when } of Object.values(catalogue)) {
      expect(text).toMatch(/^[^.]+$/)
      expect(when).toMatch(/\.$/)
      expect(remedy).toMatch(/\.$/)
    }
    const texts = Object.values(catalogue).map(({ text }) => text)
    expect(new Set(texts).size).toBe(texts.length)
  })

  it("has the texts of the interface, to the letter", () => {
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
