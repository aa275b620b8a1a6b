import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"

const script = readFileSync(new URL("../../src/hosts/http/playground/script.js", import.meta.url), "utf8")
const guide = readFileSync(new URL("../../docs/passkeys.md", import.meta.url), "utf8")
const blocks = [...guide.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code ?? "")

describe("the guide to passkeys", () => {
  it("the passkey guide shows code", () => {
    expect(blocks.length).toBeGreaterThan(3)
  })

  it.each(blocks)("shows the playground's code, which a test runs in a browser: %#", (code) => {
    expect(script).toContain(code)
  })
})
