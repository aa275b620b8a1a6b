import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as ConfigText from "../../../src/hosts/config/ConfigText.js"

const file = `// head
{
  "rpc": "https://a/b", // the node
  "list": [
    { "id": "x" },
    {
      "id": "y" /* last */
    }
  ],
  "none": [],
  "one": { "a": 1 }
}
`

const parsed = (text: string): unknown => JSON.parse(ConfigText.json(text))

describe("the text of a configuration file", () => {
  it("comments are ignored, and their marks inside strings are kept", () => {
    expect(parsed(file)).toEqual({
      rpc: "https://a/b",
      list: [{ id: "x" }, { id: "y" }],
      none: [],
      one: { a: 1 }
    })
    expect(ConfigText.json(file)).toHaveLength(file.length)
    expect(parsed('{"a": "\\"//\\\\", "b": "/*"} // "c"')).toEqual({ a: '"//\\', b: "/*" })
  })

  it("an edit keeps comments and all unrelated text", () => {
    const edits: ReadonlyArray<readonly [ReadonlyArray<string | number>, unknown]> = [
      [["rpc"], { env: "RPC" }],
      [["list", 0, "factory"], "0x1"],
      [["list", 1, "networks"], [{ chainId: 1 }]],
      [["list", 2], { id: "z" }],
      [["none", 0], 7],
      [["new"], true]
    ]
    const edited = edits.reduce((text, [path, value]) => ConfigText.set(text, path, value), file)
    expect(edited).toBe(`// head
{
  "rpc": {
    "env": "RPC"
  }, // the node
  "list": [
    { "id": "x", "factory": "0x1" },
    {
      "id": "y", /* last */
      "networks": [
        {
          "chainId": 1
        }
      ]
    },
    {
      "id": "z"
    }
  ],
  "none": [
    7
  ],
  "one": { "a": 1 },
  "new": true
}
`)
  })

  it("an edit changes one value of any JSON", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }),
        fc.string(),
        fc.jsonValue(),
        fc.constantFrom(0, 2),
        (object, key, value, indent) => {
          fc.pre(key !== "__proto__" && !Object.hasOwn(object, "__proto__"))
          const edited = ConfigText.set(JSON.stringify(object, null, indent), [key], value)
          expect(parsed(edited)).toEqual(JSON.parse(JSON.stringify({ ...object, [key]: value })))
        }
      )
    )
  })
})
