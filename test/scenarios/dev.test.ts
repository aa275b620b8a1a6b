import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { computeAddress } from "ethers"
import type { DevInfo } from "../../src/hosts/cli/dev/DevStack.js"
import { finished } from "../support/process/Finished.js"
import { type Program, root, runSource } from "../support/process/Program.js"

// In a separate folder, so that a developer's running stack keeps its file.
const folder = mkdtempSync(join(tmpdir(), "castellan-devtest-"))
symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
const file = join(folder, ".castellan/dev.json")
// And with separate temporary files, so that other stacks on this machine are not counted.
const temporary = join(folder, "tmp")
mkdirSync(temporary)
const running: Array<Program> = []

afterAll(async () => {
  for (const { child } of running) child.kill("SIGTERM")
  await Promise.all(running.map(({ ended }) => ended))
  rmSync(folder, { recursive: true })
})

const dev = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const program = await runSource("src/hosts/cli/castellan.ts", ["dev", ...args], {
    cwd: folder,
    env: { TMPDIR: temporary, ...env }
  })
  running.push(program)
  return program
}

const anyPorts = ["--port", "0", "--rpc-port", "0"]

const info = (): DevInfo => JSON.parse(readFileSync(file, "utf8"))

const portOf = (url: string): number => Number(new URL(url).port)

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })

const rpc = async (url: string, method: string, params: ReadonlyArray<unknown> = []): Promise<unknown> => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })
  const { result }: { readonly result: unknown } = JSON.parse(await answer.text())
  return result
}

const folders = (): ReadonlyArray<string> =>
  readdirSync(temporary).filter((name) => name.startsWith("castellan-dev-"))

describe("npm run dev", () => {
  it("starts a stack whose file is for its owner only and holds what a client needs", async () => {
    const program = await dev([...anyPorts, "--chain-id", "80002"])
    await program.says("Ctrl-C stops it")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(folder, ".castellan")).mode & 0o777).toBe(0o700)
    const stack = info()
    expect(Object.keys(stack)).toEqual([
      "baseUrl",
      "rpc",
      "chainId",
      "apiKeys",
      "settings",
      "entryPoints",
      "paymaster",
      "token",
      "reverter",
      "faucetPrivateKey",
      "console",
      "config"
    ])
    expect(Object.keys(stack.apiKeys)).toEqual(["free", "pro", "enterprise"])
    expect(stack.settings).toEqual({
      rpc: stack.rpc,
      entryPoint: stack.entryPoints["v0.7"],
      factory: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      validator: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      beaconAdminAddress: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      beaconAdminCreationCode: expect.stringMatching(/^0x60/),
      signer: { clientId: "dev", versionId: "1" }
    })
    expect(stack.chainId).toBe(80_002)
    expect(await rpc(stack.rpc, "eth_chainId")).toBe("0x13882")
    const { beaconAdminAddress, factory, validator } = stack.settings
    const contracts = [...Object.values(stack.entryPoints), factory, validator, beaconAdminAddress]
    contracts.push(stack.paymaster, stack.token, stack.reverter)
    for (const address of contracts) {
      const code = await rpc(stack.rpc, "eth_getCode", [address, "latest"])
      expect(String(code).length).toBeGreaterThan(2)
    }
    const ask = async (path: string, key: string, body: unknown) => {
      const answer = await fetch(`${stack.baseUrl}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": key },
        body: JSON.stringify(body)
      })
      return JSON.parse(await answer.text())
    }
    const eoas: Array<string> = []
    for (const key of Object.values(stack.apiKeys)) {
      const signer = await ask("/getSigner", key, { signer: stack.settings.signer })
      const bundler = await ask("/getbundleraddress", key, {})
      eoas.push(signer.address, bundler.address)
    }
    expect(new Set(eoas).size).toBe(2)
    expect(eoas).not.toContain(computeAddress(stack.faucetPrivateKey))
    for (const eoa of new Set(eoas))
      expect(BigInt(String(await rpc(stack.rpc, "eth_getBalance", [eoa, "latest"])))).toBeGreaterThan(
        10n ** 18n
      )
  })

  it("prints three links that work, and one request that executes an operation", async () => {
    const [program] = running
    const said = program?.stdout() ?? ""
    const [playground = "", api = "", console_ = ""] = ["Playground", "API page", "Console"].map(
      (name) => new RegExp(`^${name} +(http\\S+)$`, "m").exec(said)?.[1] ?? ""
    )
    expect(said.match(/http:\S+#/g)).toEqual([playground.replace(/#.*/, "#")])
    for (const [link, text] of [
      [playground, "A wallet that only your passkey can move"],
      [api, "castellan HTTP interface"]
    ] as const)
      expect(await (await fetch(link)).text()).toContain(text)
    const signedIn = await fetch(console_, { redirect: "manual" })
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
    const overview = await fetch(new URL(signedIn.headers.get("location") ?? "", console_), {
      headers: { cookie }
    })
    expect(await overview.text()).toContain("Money moves")

    const curls = said.match(/^curl .*$/gm) ?? []
    expect(curls).toHaveLength(1)
    const ran = await finished("bash", ["-c", curls[0] ?? ""], folder)
    expect(JSON.parse(ran.stdout)).toMatchObject({ status: 1, logs: expect.any(Array) })
  })

  it("commands work next to it without a configuration", async () => {
    const command = async (...words: ReadonlyArray<string>) => {
      const ran = await runSource("src/hosts/cli/castellan.ts", [...words, "--json"], { cwd: folder })
      expect(await ran.ended, ran.stderr()).toBe(0)
      return JSON.parse(ran.stdout())
    }
    const requests = await command("requests", "list")
    expect(requests.map((row: { readonly endpoint: string }) => row.endpoint)).toContain("/execute")
    expect(await command("requests", "show", requests[0].requestId)).toMatchObject({ state: "final" })
    expect(await command("lanes", "list")).toEqual(expect.any(Array))
    const accounts = await command("accounts", "list")
    expect(accounts.map((row: { readonly id: string }) => row.id)).toContain("pro")
    const signers = await command("signers", "list")
    expect(signers.every((row: { readonly reachable: boolean }) => row.reachable)).toBe(true)
    expect((await command("keys", "create", "free")).key).toMatch(/^cst_/)
  })

  it("serves the program of README.md, whose answer is there", async () => {
    const readme = readFileSync(join(root, "README.md"), "utf8")
    const [, program = ""] = /```js\n([\s\S]*?)```/.exec(readme) ?? []
    const [, answer = ""] = /```text\n([\s\S]*?)```/.exec(readme) ?? []
    const module = join(folder, "example.mjs")
    writeFileSync(module, program.replace("castellan/client", join(root, "src/client/Client.ts")))
    const loader = join(root, "node_modules/tsx/dist/loader.mjs")
    const ran = await finished(process.execPath, ["--import", loader, module], folder)
    expect(ran.stderr).toBe("")
    expect(ran.stdout).toBe(answer)
  })

  it("names the port in use, ends with code 1 and leaves no files", async () => {
    const stack = info()
    const before = folders()
    expect(before).toHaveLength(1)
    const service = await dev(["--port", String(portOf(stack.baseUrl)), "--rpc-port", "0"])
    expect(await service.ended).toBe(1)
    expect(service.stderr()).toContain(`port ${portOf(stack.baseUrl)} (--port) is in use`)
    const console_ = await dev([...anyPorts, "--console-port", String(portOf(stack.console ?? ""))])
    expect(await console_.ended).toBe(1)
    expect(console_.stderr()).toContain(`port ${portOf(stack.console ?? "")} (--console-port) is in use`)
    const node = await dev(["--port", "0", "--rpc-port", String(portOf(stack.rpc))])
    expect(await node.ended).toBe(1)
    expect(node.stderr()).toContain(`port ${portOf(stack.rpc)} (--rpc-port) is in use`)
    expect(folders()).toEqual(before)
    expect(info()).toEqual(stack)
  })

  it("leaves no chain, database or file behind when it is stopped", async () => {
    const stack = info()
    const [program] = running
    program?.child.kill("SIGINT")
    expect(await program?.ended).toBe(0)
    expect(existsSync(join(folder, ".castellan"))).toBe(false)
    expect(await listens(portOf(stack.rpc))).toBe(false)
    expect(await listens(portOf(stack.baseUrl))).toBe(false)
    expect(folders()).toEqual([])
  })

  it("refuses to run where real keys may be", async () => {
    for (const env of [{ NODE_ENV: "production" }, { CASTELLAN_CONFIG: "/nowhere/castellan.json" }]) {
      const program = await dev([...anyPorts], env)
      expect(await program.ended).toBe(1)
      expect(program.stdout()).toBe("")
      expect(program.stderr()).toContain("the development stack does not start")
    }
    expect(existsSync(file)).toBe(false)
  })

  it("names an option that it does not know or cannot use", async () => {
    for (const [args, message] of [
      [["--prot", "1"], "--prot"],
      [["--port", "70000"], '--port: expected an integer from 0 to 65535, got "70000"'],
      [["--block-time", "0"], '--block-time: expected an integer from 1 to 3600, got "0"']
    ] as const) {
      const program = await dev(args)
      expect(await program.ended).toBe(1)
      expect(program.stderr()).toContain(message)
    }
  })
})

describe("a stack that makes blocks every second", () => {
  it("serves the demo, which uses a running stack on request", async () => {
    const stack = await dev([...anyPorts, "--block-time", "1"])
    await stack.says("Ctrl-C stops it")
    const demo = await runSource("tools/demo/demo.ts", ["--dev", file])
    running.push(demo)
    expect(await demo.ended, demo.stdout() + demo.stderr()).toBe(0)
    expect(demo.stdout()).toMatch(/\n\d+ checks passed, 0 failed, in /)
    expect(demo.stdout()).toMatch(/\/execute of 1: \d+ HTTP round trips with \d+ JSON-RPC calls/)
    stack.child.kill("SIGTERM")
    expect(await stack.ended).toBe(0)
  }, 120_000)
})
