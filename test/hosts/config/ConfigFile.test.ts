import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { jsonSchema } from "../../../src/hosts/config/ConfigFile.js"

const schema = JSON.parse(jsonSchema())
const valid = new Ajv2020({ strict: false, allErrors: true }).compile(schema)
const root = new URL("../../..", import.meta.url)
const page = readFileSync(new URL("docs/configuration.md", root), "utf8")
const example = JSON.parse(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? "null")

describe("the JSON Schema of the configuration", () => {
  it("the JSON Schema equals that in the documentation", () => {
    expect(readFileSync(new URL("docs/config.schema.json", root), "utf8")).toBe(`${jsonSchema()}\n`)
  })

  it("the JSON Schema accepts the documentation's configuration", () => {
    expect([valid(example), valid.errors]).toEqual([true, null])
  })

  it.each([
    ["an unknown field", { ...example, limit: {} }],
    ["an unknown tier", { ...example, accounts: [{ id: "a", name: "a", tier: "gold", keys: [] }] }],
    ["an invalid port", { ...example, listen: { host: "127.0.0.1", port: 65_536 } }],
    ["a missing field", { ...example, keyPepper: undefined }]
  ])("refuses %s", (_, file) => {
    expect(valid(JSON.parse(JSON.stringify(file)))).toBe(false)
  })
})
