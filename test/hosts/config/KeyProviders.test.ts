import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { loadModule } from "../../../src/hosts/config/KeyProviders.js"

const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"))

describe("a technology whose opt-in package is missing", () => {
  it.effect("a missing package is refused with the command that installs its tested version", () =>
    Effect.gen(function* () {
      const away = () => Promise.reject(new Error("Cannot find package"))
      const names = ["@azure/identity", "@azure/keyvault-keys"]
      const error = yield* Effect.flip(loadModule("cloud", names, away))
      const [one, two] = names.map((name) => `${name}@${manifest.devDependencies[name]}`)
      expect(error).toMatchObject({
        reason: "refused",
        message: `packages of kind cloud are not installed: npm install ${one} ${two}`
      })
    })
  )

  it("every missing package is named", () => {
    const text = ["config/KeyProviders", "Wiring", "service/Service"]
      .map((name) => readFileSync(new URL(`../../../src/hosts/${name}.ts`, import.meta.url), "utf8"))
      .join("\n")
    const unnamed = Object.keys(manifest.peerDependencies).filter((name) => !text.includes(`"${name}"`))
    expect(unnamed).toEqual([])
  })
})
