import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { ContractFactory, computeAddress } from "ethers"
import { root } from "../../test/support/process/Program.js"
import { signerKey } from "./Castellan.js"
import { ensure } from "./Claim.js"
import * as Client from "./Client.js"
import type { Context } from "./Context.js"
import * as Peers from "./Peers.js"
import * as Processes from "./Processes.js"
import { recipient } from "./Wallets.js"
import * as World from "./World.js"

/** The contenders for ops: viem by itself, and permissionless with alto. Each has a separate chain. */

export interface Run {
  readonly ops: number
  readonly seconds: number
  /** Milliseconds: per transaction for `raw`, per op for alto. */
  readonly latencies: ReadonlyArray<number>
  /** CPU of the signing client. */
  readonly cpuMillis: number
}

/** Keys at indices unused by castellan's signers. */
const ownerKey = signerKey(1_000_000)
const bundlerKey = signerKey(1_000_001)

interface Artifact {
  readonly abi: ReadonlyArray<Record<string, unknown>>
  readonly bytecode: string
}

const simpleAccountFactory = async (world: World.World): Promise<string> => {
  const require = createRequire(import.meta.url)
  const file = require.resolve("@account-abstraction/contracts-v0.7/artifacts/SimpleAccountFactory.json")
  const { abi, bytecode }: Artifact = JSON.parse(readFileSync(file, "utf8"))
  const factory = new ContractFactory([...abi], bytecode, world.faucet)
  const deployed = await factory.deploy(world.chain.entryPoints["v0.7"])
  await deployed.waitForDeployment()
  return deployed.getAddress()
}

export interface Raw {
  readonly world: World.World
  /** Runs until the time is over or `most` transactions are mined, and checks the transfers. */
  readonly run: (options: {
    readonly perTransaction: number
    readonly millis: number
    readonly most?: number
    readonly readNonces: boolean
  }) => Promise<Run>
  /** Deploys fresh wallets by `handleOps`, and checks their code. */
  readonly create: (options: {
    readonly perTransaction: number
    readonly transactions: number
  }) => Promise<Run>
}

const checked = async (world: World.World, to: string, found: Run): Promise<Run> => {
  const arrived = await world.balance(to)
  ensure(arrived === found.ops, `${arrived} transfers arrived of ${found.ops}`)
  return found
}

/** `raw` calls the chain through `nodeUrl`, if given. */
export const raw = async (
  context: Context,
  count: number,
  through?: (world: World.World) => Promise<string>
) => {
  const world = await World.start(context)
  const factory = await simpleAccountFactory(world)
  const peer = Peers.start(context, "raw.mjs")
  const { chain } = world
  await world.fund([computeAddress(bundlerKey)])
  const wallets = await peer.ask<ReadonlyArray<string>>("setup", {
    rpc: (await through?.(world)) ?? chain.url,
    entryPoint: chain.entryPoints["v0.7"],
    factory,
    token: chain.token,
    ownerKey,
    bundlerKey,
    count
  })
  await world.fund(wallets)
  await world.mint(wallets)
  const run: Raw["run"] = async (options) => {
    const to = recipient()
    return checked(
      world,
      to,
      await peer.ask<Run>("run", { most: Number.MAX_SAFE_INTEGER, ...options, recipient: to })
    )
  }
  const create: Raw["create"] = async ({ perTransaction, transactions }) => {
    const count = perTransaction * transactions
    const created = await peer.ask<ReadonlyArray<string>>("predict", { count })
    await world.fund(created)
    const found = await peer.ask<Run>("create", { perTransaction })
    await World.ensureCode(world, created)
    return found
  }
  return { world, run, create }
}

export interface Alto {
  readonly world: World.World
  readonly pid: number
  readonly readyMillis: number
  readonly run: (options: {
    readonly callers: number
    readonly millis: number
    readonly most?: number
  }) => Promise<Run & { readonly altoCpuMillis: number }>
  /** Works in the background, so it is stopped while others are measured. */
  readonly pause: () => void
  readonly resume: () => void
}

const serving = async (url: string, said: () => string): Promise<void> => {
  const until = performance.now() + 60_000
  const client = Client.make(url)
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_supportedEntryPoints", params: [] })
  for (;;) {
    const found = await client
      .send("POST", "/", { "content-type": "application/json" }, body)
      .catch(() => null)
    if (found?.text.includes("0x") === true) return client.close()
    if (performance.now() > until) throw new Error(`alto does not answer: ${said()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** alto as a process. `loopback.mjs` binds it to loopback, for which it has no option. */
export const altoProcess = async (context: Context, world: World.World, nodeUrl = world.chain.url) => {
  const port = await World.freePort()
  const keys = [signerKey(1_000_002), signerKey(1_000_003)]
  await world.fund(keys.map(computeAddress))
  const began = performance.now()
  const { child, pid, said } = Peers.run(context, [
    "--import",
    join(root, "test/peers/loopback.mjs"),
    "node_modules/@pimlico/alto/esm/cli/alto.js",
    "run",
    ...["--entrypoints", world.chain.entryPoints["v0.7"]],
    ...["--executor-private-keys", keys[0] ?? ""],
    ...["--utility-private-key", keys[1] ?? ""],
    ...["--rpc-url", nodeUrl],
    ...["--port", String(port)],
    // The rules of ERC-7562 need a JavaScript tracer, which anvil lacks.
    ...["--safe-mode", "false"],
    ...["--log-level", "warn"]
  ])
  const url = `http://127.0.0.1:${port}`
  await serving(url, said)
  return { pid, child, url, readyMillis: performance.now() - began, said }
}

export const alto = async (
  context: Context,
  count: number,
  through?: (world: World.World) => Promise<string>
): Promise<Alto> => {
  const world = await World.start(context)
  const factory = await simpleAccountFactory(world)
  const nodeUrl = (await through?.(world)) ?? world.chain.url
  // It uses the wallets of `raw` with the same owner, created in advance so that ops need not.
  const maker = Peers.start(context, "raw.mjs")
  await world.fund([computeAddress(bundlerKey)])
  const wallets = await maker.ask<ReadonlyArray<string>>("setup", {
    rpc: world.chain.url,
    entryPoint: world.chain.entryPoints["v0.7"],
    factory,
    token: world.chain.token,
    ownerKey,
    bundlerKey,
    count
  })
  await world.fund(wallets)
  await world.mint(wallets)
  const { child, pid, readyMillis, url } = await altoProcess(context, world, nodeUrl)
  const client = Peers.start(context, "permissionless.mjs")
  const found = await client.ask<ReadonlyArray<string>>("setup", {
    bundler: url,
    rpc: nodeUrl,
    factory,
    ownerKey,
    count
  })
  ensure(found.join() === wallets.join(), "permissionless derives other addresses than the factory")
  const run: Alto["run"] = async (options) => {
    const to = recipient()
    const from = Processes.cpuMillis(pid)
    const params = { most: Number.MAX_SAFE_INTEGER, ...options, recipient: to, token: world.chain.token }
    const sample = await checked(world, to, await client.ask<Run>("run", params))
    return { ...sample, altoCpuMillis: Processes.cpuMillis(pid) - from }
  }
  return {
    world,
    pid,
    readyMillis,
    run,
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT")
  }
}
