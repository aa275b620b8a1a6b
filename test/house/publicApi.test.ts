import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as PublicApi from "../../tools/PublicApi.js"

const root = new URL("../..", import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), "utf8")
const sources = PublicApi.sources()

/** The namespaces of the package's root and their modules. */
const namespaces = new Map(
  [...read("src/index.ts").matchAll(/export \* as (\w+) from "\.\/(.+)\.js"/g)].map(([, name, path]) => [
    `castellan/${name}`,
    `src/${path}.ts`
  ])
)

describe("the public surface", () => {
  it("the public surface is listed in docs/public-api.md", () => {
    expect(read("docs/public-api.md")).toBe(PublicApi.page(PublicApi.entries()))
  })

  it("the public surface is the root's namespaces, one path each, plus adapters, hosts and the client", () => {
    const modules = [...sources].filter(([path]) => /^castellan\/[A-Z]/.test(path))
    expect(namespaces.size).toBeGreaterThan(40)
    expect(new Map(modules)).toEqual(namespaces)
    const others = [...sources.keys()].filter((path) => !namespaces.has(path))
    expect(
      others.filter(
        (path) =>
          !/^castellan(\/http|\/client|\/passkeys|\/promise|\/adapters\/[A-Z][A-Za-z0-9]*)?$/.test(path)
      )
    ).toEqual([])
  })

  it("public paths lead to existing files, each by name and not by a pattern", () => {
    expect([...sources.keys()].filter((path) => path.includes("*"))).toEqual([])
    expect([...sources.values()].filter((path) => !existsSync(new URL(path, root)))).toEqual([])
  })
})
