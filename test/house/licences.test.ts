import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Licences from "../../tools/Licences.js"

const packages = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8"))
  .packages as Readonly<Record<string, Licences.Locked>>

/** What a product under MIT may be shipped with, no conditions on its own code. */
const compatible =
  /^(0BSD|Apache-2\.0|BlueOak-1\.0\.0|BSD-[23]-Clause|CC0-1\.0|ISC|MIT|MIT License|Unlicense)$/

/** A choice of licences is as good as its best one. */
const choices = (licence: string): ReadonlyArray<string> => licence.replace(/^\((.*)\)$/, "$1").split(" OR ")

describe("the licences of what runs", () => {
  const runs = Licences.ofRunTime(packages)

  it("are all compatible with MIT", () => {
    expect(runs.length).toBeGreaterThan(100)
    expect(runs.filter(({ licence }) => !choices(licence).some((one) => compatible.test(one)))).toEqual([])
  })

  it("are all said", () => {
    expect(runs.filter(({ licence }) => licence === "unknown")).toEqual([])
  })

  it("leave the few others to development: sources that a test compiles against, and that nothing ships", () => {
    const others = Object.entries(packages)
      .filter(([path, { license = "" }]) => path !== "" && /GPL|BUSL/.test(license))
      .map(([path, { dev }]) => [path.replace("node_modules/", ""), dev])
    expect(others).toEqual([
      ["@uniswap/lib", true],
      ["@uniswap/v2-core", true],
      ["@uniswap/v3-core", true],
      ["@uniswap/v3-periphery", true]
    ])
  })
})
