import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as EnvOverrides from "../../../src/hosts/config/EnvOverrides.js"

const file = { listen: { host: "h", port: 1 }, networks: [{ chainId: 1 }, { chainId: 2 }], flag: true }

const applied = (env: Readonly<Record<string, string>>) => EnvOverrides.apply(file, env)

describe("overrides of the environment", () => {
  it("an override replaces a field by its name in the file", () => {
    expect(applied({ CASTELLAN__listen__port: "81" })).toEqual({
      file: { ...file, listen: { host: "h", port: 81 } },
      problems: []
    })
  })

  it("overrides reach into lists and can append one element", () => {
    const { file: after, problems } = applied({
      CASTELLAN__networks__1__chainId: "7",
      CASTELLAN__networks__2: '{"chainId": 3}'
    })
    expect(problems).toEqual([])
    expect(after).toEqual({ ...file, networks: [{ chainId: 1 }, { chainId: 7 }, { chainId: 3 }] })
  })

  it("overrides add missing fields at every depth", () => {
    expect(applied({ CASTELLAN__limits__bodyBytes: "65536" }).file).toEqual({
      ...file,
      limits: { bodyBytes: 65_536 }
    })
  })

  it("overrides are parsed as JSON, or as strings if they are not JSON", () => {
    const values = {
      a: "true",
      b: "null",
      c: '{"env": "X"}',
      d: "[1]",
      e: "/run/secret",
      f: '"7"',
      g: "0x12"
    }
    const env = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [`CASTELLAN__${name}`, value])
    )
    expect(applied(env).file).toEqual({
      ...file,
      a: true,
      b: null,
      c: { env: "X" },
      d: [1],
      e: "/run/secret",
      f: "7",
      g: "0x12"
    })
  })

  it("errors name every variable with an unknown path", () => {
    const { problems } = applied({
      CASTELLAN__networks__4: "{}",
      CASTELLAN__networks__x__chainId: "1",
      CASTELLAN__flag__deep: "1",
      CASTELLAN__listen____port: "1"
    })
    expect(problems).toEqual([
      { path: "CASTELLAN__flag__deep", message: "there is nothing below this field" },
      { path: "CASTELLAN__listen____port", message: "expected field names between __" },
      { path: "CASTELLAN__networks__4", message: "expected the index of a list of 2" },
      { path: "CASTELLAN__networks__x__chainId", message: "expected the index of a list of 2" }
    ])
  })

  it("overrides ignore other variables", () => {
    expect(applied({ CASTELLAN_CONFIG: "x", PATH: "y", castellan__listen: "z" }).file).toEqual(file)
  })

  it("overrides cannot change prototypes", () => {
    const { file: after } = applied({ CASTELLAN____proto__: '{"x": 1}', CASTELLAN__a____proto____b: "1" })
    expect(({} as { x?: number }).x).toBeUndefined()
    expect(Object.getPrototypeOf(after)).toBe(Object.prototype)
  })

  it("overrides never throw for any file and environment", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.dictionary(
          fc
            .array(fc.string({ maxLength: 4 }), { maxLength: 4 })
            .map((path) => `CASTELLAN__${path.join("__")}`),
          fc.string()
        ),
        (value, env) => {
          EnvOverrides.apply(value, env)
        }
      )
    )
  })
})
