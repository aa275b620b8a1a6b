import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"

interface Package {
  readonly version?: string
  readonly resolved?: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), "utf8"))
const packages: Readonly<Record<string, Package>> = read("package-lock.json").packages

const names = new Set(Object.keys(packages).map((path) => path.slice(path.lastIndexOf("node_modules/") + 13)))

describe("package-lock.json", () => {
  it("package-lock.json has the packages of every platform, or npm ci fails (fix: .ci/complete-lockfile.mjs)", () => {
    const missing = Object.values(packages).flatMap(({ optionalDependencies = {} }) =>
      Object.keys(optionalDependencies).filter((name) => !names.has(name))
    )
    expect(missing).toEqual([])
  })

  it("package-lock.json names no download address", () => {
    expect(Object.values(packages).filter(({ resolved }) => resolved?.startsWith("http"))).toEqual([])
  })

  it("package-lock.json has no old schema package and no second effect", () => {
    expect(names).not.toContain("@effect/schema")
    expect(Object.keys(packages).filter((path) => path.endsWith("node_modules/effect"))).toEqual([
      "node_modules/effect"
    ])
  })
})

describe("package.json", () => {
  it("pins exact versions, except of packages shared with an embedding program", () => {
    const { dependencies, devDependencies, optionalDependencies } = read("package.json")
    const loose = Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies }).filter(
      ([, version]) => !/^(npm:.+@)?\d+\.\d+\.\d+(-[\d.]+)?$/.test(String(version))
    )
    expect(loose.map(([name]) => name)).toEqual(["effect"])
  })
})
