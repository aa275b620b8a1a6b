import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as CommandLine from "../../../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-config-"))
afterAll(() => rmSync(folder, { recursive: true }))

const usable = {
  profile: "production",
  listen: { host: "127.0.0.1", port: 8080 },
  database: { path: "castellan.db" },
  keyPepper: { env: "PEPPER" },
  accounts: [],
  networks: [{ chainId: 137 }]
}
const pepper = "a pepper that only this test uses"

const check = (file: unknown, env: Readonly<Record<string, string>> = { PEPPER: pepper }) => {
  const path = join(folder, "castellan.json")
  writeFileSync(path, JSON.stringify(file))
  return Effect.result(CommandLine.run(["config", "check"], { CASTELLAN_CONFIG: path, ...env }))
}

describe("castellan config", () => {
  it.effect("check summarises a valid configuration", () =>
    Effect.gen(function* () {
      const said = yield* check(usable)
      expect(said).toMatchObject({ _tag: "Success" })
      expect(JSON.stringify(said)).toContain("127.0.0.1:8080")
      expect(JSON.stringify(said)).not.toContain(pepper)
    })
  )

  it.effect("check lists all problems with their paths in one run", () =>
    Effect.gen(function* () {
      const said = yield* check({
        ...usable,
        listen: { host: "127.0.0.1", port: "8080" },
        networks: [{ chainId: 0, rcp: "x" }],
        accounts: [{ id: "a", name: "A", tier: "gold", keys: [] }]
      })
      const text = JSON.stringify(said)
      for (const place of ["listen.port", "networks[0].chainId", "networks[0].rcp", "accounts[0].tier"])
        expect(text).toContain(place)
    })
  )

  it.effect("check reads secrets, and names a missing one", () =>
    Effect.gen(function* () {
      const said = yield* check(usable, {})
      expect(said).toMatchObject({ _tag: "Failure" })
      expect(JSON.stringify(said)).toContain("keyPepper")
    })
  )

  it.effect("check applies the environment's overrides", () =>
    Effect.gen(function* () {
      const env = { PEPPER: pepper, CASTELLAN__listen__port: "9090" }
      expect(JSON.stringify(yield* check(usable, env))).toContain("127.0.0.1:9090")
      const wrong = { PEPPER: pepper, CASTELLAN__listen__prot: "9090" }
      expect(JSON.stringify(yield* check(usable, wrong))).toContain("listen.prot")
    })
  )

  it.effect("schema prints the JSON Schema", () =>
    Effect.gen(function* () {
      expect(JSON.parse(yield* CommandLine.run(["config", "schema"], {}))).toMatchObject({ type: "object" })
    })
  )
})
