import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { loaded } from "../../../src/hosts/keys/KeyProviderKind.js"

const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"))

describe("a key provider whose optional package is missing", () => {
  it.effect("is refused with the command that installs it", () =>
    Effect.gen(function* () {
      const away = () => Promise.reject(new Error("Cannot find package"))
      const error = yield* Effect.flip(loaded("cloud", ["one", "@scope/two"], away, () => Effect.void))
      expect(error).toMatchObject({
        reason: "refused",
        message: "what kind cloud needs is not installed: npm install one @scope/two"
      })
    })
  )

  it("has every package named that is optional", () => {
    const named = ["AwsKms", "AzureKeyVault", "Fireblocks", "GcpKms", "Pkcs11", "../Wiring"].flatMap(
      (name) => {
        const text = readFileSync(new URL(`../../../src/hosts/keys/${name}.ts`, import.meta.url), "utf8")
        return Object.keys(manifest.optionalDependencies).filter(
          (each) => text.includes(`"${each}"`) || text.includes(`npm install ${each}"`)
        )
      }
    )
    // Without these two the same is done in JavaScript.
    const replaced = ["hash-wasm", "secp256k1"]
    expect([...named, ...replaced].sort()).toEqual(Object.keys(manifest.optionalDependencies).sort())
  })
})
