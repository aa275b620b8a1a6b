import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Castellan from "castellan/client"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { DevInfo } from "../../src/hosts/cli/dev/DevStack.js"
import { generate, jar } from "../../tools/sdk/sdk.js"
import { type Finished, finished } from "../support/process/Finished.js"
import { type Program, root, runSource } from "../support/process/Program.js"
import { mintTwice } from "./smoke.js"

// docs/clients.md shows these programs.
const folder = mkdtempSync(join(tmpdir(), "castellan-sdk-"))
const goPath = join(folder, "go")
let service: Program
let dev: DevInfo

beforeAll(async () => {
  service = await runSource("src/hosts/cli/castellan.ts", ["dev", "--port", "0", "--rpc-port", "0"], {
    cwd: folder
  })
  await Promise.all([
    service.says("Ctrl-C stops it"),
    generate("python", join(folder, "python")),
    generate("go", join(goPath, "src/castellan")),
    generate("java", join(folder, "java"))
  ])
  dev = JSON.parse(readFileSync(join(folder, ".castellan/dev.json"), "utf8"))
})

afterAll(async () => {
  service.child.kill("SIGTERM")
  await service.ended
  rmSync(folder, { recursive: true })
})

const reported = ({ status, stderr, stdout }: Finished): Minted => {
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(stdout)
}

type Minted = Awaited<ReturnType<typeof mintTwice>>

/** Checks what a program reports: one mint, and the service's refusal of a second body for its key. */
const mintedOnce = async ({ code, txHash, wallet }: Minted) => {
  expect(code).toBe("idempotency_key_reused")
  const client = Castellan.make({ baseUrl: dev.baseUrl, apiKey: dev.apiKeys.pro })
  const { requests } = await client.requests({ wallet })
  const executed = requests.filter(({ endpoint }) => endpoint === "/execute")
  expect(executed).toHaveLength(1)
  expect((await client.request(executed[0]?.requestId ?? "")).txHashes).toEqual([txHash])
  const [balance] = await client.read({
    reads: [
      { to: dev.token, funcSignature: "balanceOf(address)", funcParams: [wallet], returnSignature: "uint256" }
    ],
    rpc: dev.rpc
  })
  expect(balance).toMatchObject({ results: ["1000"] })
}

describe("clients", () => {
  it("castellan/client waits for a write, and executes it once for one key", async () => {
    await mintedOnce(await mintTwice(dev))
  })

  it("the Python SDK waits for a write, and executes it once for one key", async () => {
    const env = { ...process.env, PYTHONPATH: join(folder, "python") }
    const program = join(root, "test/sdk/smoke.py")
    await mintedOnce(reported(await finished("/usr/bin/python3", [program], folder, env)))
  })

  it("the Go SDK waits for a write, and executes it once for one key", async () => {
    mkdirSync(join(goPath, "src/smoke"))
    copyFileSync(join(root, "test/sdk/smoke.go"), join(goPath, "src/smoke/main.go"))
    const env = { ...process.env, GO111MODULE: "off", GOPATH: `${goPath}:/usr/share/gocode` }
    await mintedOnce(reported(await finished("go", ["run", "smoke"], folder, env)))
  })

  it("the Java SDK waits for a write, and executes it once for one key", async () => {
    const source = join(folder, "java/src/main/java")
    const classes = join(folder, "classes")
    const files = readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".java"))
      .map((name) => join(source, name))
    const options = ["-proc:none", "-cp", jar(), "-d", classes]
    const program = join(root, "test/sdk/smoke.java")
    const compiled = await finished("javac", [...options, ...files, program], folder)
    expect(compiled).toMatchObject({ status: 0, stderr: "" })
    await mintedOnce(reported(await finished("java", ["-cp", `${classes}:${jar()}`, "Smoke"], folder)))
  })
})
