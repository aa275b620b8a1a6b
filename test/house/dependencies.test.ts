import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { closure, installed, manifest, optIn, packages } from "../support/Lockfile.js"

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")
const withThem = closure([...installed, ...optIn])

/** Licences of dependencies that put no conditions on the code of an MIT product. */
const compatible =
  /^(0BSD|Apache-2\.0|BlueOak-1\.0\.0|BSD-[23]-Clause|CC0-1\.0|ISC|MIT|MIT License|Unlicense)$/

/** A choice of licences is as good as its best one. */
const choices = (licence: string): ReadonlyArray<string> => licence.replace(/^\((.*)\)$/, "$1").split(" OR ")

describe("what runs", () => {
  it("runtime packages have stated licences compatible with MIT", () => {
    expect(withThem.size).toBeGreaterThan(100)
    const others = [...withThem].filter(
      ([, { license = "unknown" }]) => !choices(license).some((one) => compatible.test(one))
    )
    expect(others).toEqual([])
  })

  it("the only runtime package with a native part ships it built, and is optional", () => {
    const scripts = [...closure(installed)].filter(([, { hasInstallScript }]) => hasInstallScript === true)
    expect(scripts.map(([place]) => place.replace("node_modules/", ""))).toEqual(["secp256k1"])
    expect(Object.keys(manifest.optionalDependencies ?? {})).toEqual(["secp256k1"])
  })

  it("runtime packages exclude key providers and Redis", () => {
    const brought = [...closure(installed).keys()].map((place) => place.replace("node_modules/", ""))
    expect(optIn.filter((name) => brought.includes(name))).toEqual([])
    expect(Object.keys(manifest.peerDependenciesMeta ?? {})).toEqual(optIn)
    for (const name of optIn)
      expect(manifest.peerDependencies?.[name], name).toBe(`^${manifest.devDependencies?.[name]}`)
  })

  it("docs/dependencies.md lists each runtime package with its licence", () => {
    const rows = read("docs/dependencies.md").matchAll(/^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)
    const told = [...rows].map(([, name = "", , licence = ""]) => [name, licence.trim()])
    const declared = [...installed, ...optIn].map((name) => [name, packages[`node_modules/${name}`]?.license])
    expect(told.toSorted()).toEqual(declared.toSorted())
  })

  it("has the documented installation, in the version that the tests use", () => {
    const pages = [
      "configuration",
      ...["aws-kms", "azure-kv", "fireblocks", "gcp-kms", "pkcs11"].map((page) => `signers/${page}`)
    ]
    const text = pages.map((page) => read(`docs/${page}.md`)).join("\n")
    const lines = [...text.matchAll(/`npm install ((?:[@\w/-]+@[\d.]+ ?)+)`/g)].flatMap(([, specs = ""]) =>
      specs.split(" ")
    )
    expect(lines.toSorted()).toEqual(
      optIn.map((name) => `${name}@${manifest.devDependencies?.[name]}`).toSorted()
    )
  })
})

describe("development packages", () => {
  it("packages of other licences are only test sources that are not shipped", () => {
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
