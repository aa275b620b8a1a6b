import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync
} from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { computeAddress, id } from "ethers"
import type { DevInfo } from "../../src/hosts/cli/dev/DevStack.js"
import { finished } from "../support/process/Finished.js"
import { type Program, root, runSource } from "../support/process/Program.js"

// A folder of its own, so that a developer's running stack keeps its file.
const folder = mkdtempSync(join(tmpdir(), "castellan-devtest-"))
symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
const file = join(folder, ".castellan/dev.json")
// And temporary files of its own, so that other stacks on this machine are not counted.
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

/** The printed commands, each with its title, as a shell script that marks where each answer begins. */
const script = (printed: string): string =>
  printed
    .split("\n")
    .filter((line) => !line.startsWith("castellan "))
    .map((line) => line.replace(/^# (.*)$/, 'echo; echo "### $1"'))
    .join("\n")

describe("npm run dev", () => {
  it("starts a stack whose file is for its owner only and holds what a client needs", async () => {
    const program = await dev(["--port", "0", "--rpc-port", "0", "--chain-id", "80002"])
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
      "faucetPrivateKey"
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

  it("prints commands for every endpoint that work in their order", async () => {
    const [program] = running
    const ran = await finished("bash", ["-u", "-c", script(program?.stdout() ?? "")], folder)
    expect(ran.stderr).toBe("")
    const answers = new Map(
      ran.stdout
        .split("\n### ")
        .slice(1)
        .map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1).trim()])
    )
    const parsed = [...answers].flatMap(([title, text]) =>
      text === "" ? [] : [[title, JSON.parse(text)] as const]
    )
    const by = (word: string) => parsed.find(([title]) => title.includes(word))?.[1]
    expect(by("predict")[0].error).toBeNull()
    expect(by("create it").status).toBe(1)
    expect(by("check")[0]).toMatchObject({ exists: true, wallet: by("predict")[0].wallet })
    expect(by("mint").status).toBe(1)
    expect(by("estimate").status).toBe(1)
    expect(by("estimate").userOps).toHaveLength(2)
    expect(by("encoded").status).toBe(1)
    expect(by("receipt").receipts[0].txHash).toBe(by("mint").txHash)
    expect(by("networks").map((network: { readonly chainId: number }) => network.chainId)).toContain(
      info().chainId
    )
    expect(by("who signs").type).toBe("PRIVATE_KEY")
    expect(by("submits for the service").address).toMatch(/^0x/)
    const transfer = by("receipt").receipts[0].logs.find(
      (log: { readonly topics: ReadonlyArray<string> }) =>
        log.topics[0] === id("Transfer(address,address,uint256)")
    )
    expect(transfer).toMatchObject({ eventName: "Transfer", address: info().token, args: { value: "1000" } })
  })

  it("serves the tour of the README as it is written", async () => {
    const [, section = ""] = readFileSync(join(root, "README.md"), "utf8").split("## A tour with curl")
    const [text = ""] = section.split("\n## ")
    const tour = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, commands]) => commands)
    expect(tour).toHaveLength(3)
    const script = ["set -euo pipefail", ...tour].join("\n")
    const ran = await finished("bash", ["-c", script], folder)
    expect(ran.stderr).toBe("")
    expect(ran.status).toBe(0)
    const answers = ran.stdout.trim().split("\n")
    const [funded, created, checked, receipt] = answers.map((line) => JSON.parse(line))
    expect(funded.result).toBeNull()
    expect(created.status).toBe(1)
    expect(checked[0].exists).toBe(true)
    const transfers = receipt.receipts[0].logs.filter(
      (log: { readonly eventName: string }) => log.eventName === "Transfer"
    )
    expect(transfers.map((log: { readonly args: { readonly value: string } }) => log.args.value)).toEqual([
      "1000",
      "250"
    ])
  })

  it("says which port is in use, ends with code 1 and leaves nothing", async () => {
    const stack = info()
    const before = folders()
    expect(before).toHaveLength(1)
    const service = await dev(["--port", String(portOf(stack.baseUrl)), "--rpc-port", "0"])
    expect(await service.ended).toBe(1)
    expect(service.stderr()).toContain(`port ${portOf(stack.baseUrl)} (--port) is in use`)
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

  it("does nothing where real keys may be", async () => {
    for (const env of [{ NODE_ENV: "production" }, { CASTELLAN_CONFIG: "/nowhere/castellan.json" }]) {
      const program = await dev(["--port", "0", "--rpc-port", "0"], env)
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
  it("serves the demo, which uses a running stack when it is told to", async () => {
    const stack = await dev(["--port", "0", "--rpc-port", "0", "--block-time", "1"])
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
