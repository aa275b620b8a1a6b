import { readFileSync } from "node:fs"
import * as Promises from "castellan/promise"
import * as Effect from "effect/Effect"
import { computeAddress } from "ethers"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { keyOf, startStack } from "./support/stack/Stack.js"
import { use } from "./support/Use.js"

/** Runs the program of docs/library.md. */

const stack = use(() => startStack({ entryPoint: "v0.8" }))

beforeAll(async () => {
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
})

describe("the program of docs/library.md", () => {
  it("has at most 25 lines and is the file that runs here", () => {
    const page = readFileSync(new URL("../docs/library.md", import.meta.url), "utf8")
    const program = readFileSync(new URL("embed/program.ts", import.meta.url), "utf8")
    expect(page).toContain(`\`\`\`ts\n${program}\`\`\``)
    expect(program.trimEnd().split("\n").length).toBeLessThanOrEqual(25)
  })

  it("creates a wallet and executes a call", async () => {
    const wallet = stack.predict("bob")
    await stack.fund(wallet, 10n ** 18n)
    const { program } = await import("./embed/program.js")
    const { returnData, status } = await Effect.runPromise(program)
    expect({ status, returnData }).toMatchObject({ status: 1, returnData: [{ 0: { success: true } }] })
    expect(await stack.provider.getCode(wallet)).not.toBe("0x")
    expect(await stack.balanceOf(wallet)).toBe(1_000n)
  })
})

describe("the example without Effect", () => {
  it("creates a wallet and executes a call", async () => {
    const wallet = stack.predict("alice")
    await stack.fund(wallet, 10n ** 18n)
    const { program } = await import("../examples/promise.js")
    const { returnData, status } = await program()
    expect({ status, returnData }).toMatchObject({ status: 1, returnData: [{ 0: { success: true } }] })
    expect(await stack.balanceOf(wallet)).toBe(1_000n)
  })
})

describe("castellan/promise", () => {
  const signers = [
    { clientId: "treasury", versionId: "1", privateKey: `0x${"11".repeat(32)}` },
    { clientId: "treasury", versionId: "2", privateKey: `0x${"22".repeat(32)}`, accounts: ["acme"] }
  ]
  const signer = (versionId: string) => ({ signer: { clientId: "treasury", versionId } })

  it("reports refusals by their code, also once it is closed", async () => {
    const castellan = await Promises.create({ networks: [], signers })
    const { address } = await castellan.getSigner(signer("1"))
    expect(address).toBe(computeAddress(`0x${"11".repeat(32)}`))
    const refused = castellan.request("5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77")
    await expect(refused).rejects.toBeInstanceOf(Promises.CastellanError)
    await expect(refused).rejects.toMatchObject({ code: "request_not_found", status: 404 })
    await Promise.all([castellan.close(), castellan.close()])
    await expect(castellan.getSigner(signer("1"))).rejects.toMatchObject({ code: "shutting_down" })
  })

  it("separates accounts and counts no requests", async () => {
    const castellan = await Promises.create({ networks: [], signers })
    const acme = castellan.forAccount("acme")
    expect((await acme.getSigner(signer("2"))).address).toBe(computeAddress(`0x${"22".repeat(32)}`))
    await expect(castellan.getSigner(signer("2"))).rejects.toMatchObject({ code: "version_not_found" })
    await expect(acme.getSigner(signer("1"))).rejects.toMatchObject({ code: "version_not_found" })
    for (let n = 0; n < 1_001; n++) await castellan.getSigner(signer("1"))
    await castellan.close()
  })

  it("rejects with every problem of its options", async () => {
    const wrong = Promises.create({ networks: [], signers, database: { path: "x", sealingKey: "short" } })
    await expect(wrong).rejects.toThrow("database.sealingKey: expected at least 16 bytes")
  })
})
