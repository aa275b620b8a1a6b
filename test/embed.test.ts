import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { keyOf, type Stack, startStack } from "./support/stack/Stack.js"

/** The README's program, run as it stands there. */

let stack: Stack

beforeAll(async () => {
  stack = await startStack({ entryPoint: "v0.8" })
  const environment = {
    RPC: stack.anvil.url,
    FACTORY: stack.suite.factory,
    BEACON: stack.suite.beacon,
    TOKEN: await stack.token.getAddress(),
    SUBMITTER: keyOf(1).privateKey,
    DEPLOYER: keyOf(3).privateKey
  }
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await stack.stop()
})

describe("the program of the README", () => {
  it("is at most 25 lines long, and the file that is run here", () => {
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
    const program = readFileSync(new URL("embed/program.ts", import.meta.url), "utf8")
    expect(readme).toContain(`\`\`\`ts\n${program}\`\`\``)
    expect(program.trimEnd().split("\n").length).toBeLessThanOrEqual(25)
  })

  it("creates a wallet and executes a call of it", async () => {
    const wallet = stack.predict("bob")
    await stack.fund(wallet, 10n ** 18n)
    const { program } = await import("./embed/program.js")
    const { returnData, status } = await Effect.runPromise(program)
    expect({ status, returnData }).toMatchObject({ status: 1, returnData: [{ 0: { success: true } }] })
    expect(await stack.provider.getCode(wallet)).not.toBe("0x")
    expect(await stack.balanceOf(wallet)).toBe(1_000n)
  })
})
