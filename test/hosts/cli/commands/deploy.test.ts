import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Contract, type JsonRpcProvider } from "ethers"
import * as Multicall from "../../../../src/domain/evm/Multicall.js"
import { deterministicDeployer } from "../../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints } from "../../../../src/hosts/cli/deploy/EntryPoints.js"
import { startAnvil } from "../../../../src/hosts/cli/dev/Anvil.js"
import { devKeys } from "../../../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../../../src/hosts/cli/support/NodeProvider.js"
import * as Config from "../../../../src/hosts/config/Config.js"
import * as CommandLine from "../../../support/process/CommandLine.js"
import * as Port from "../../../support/process/Port.js"
import { use } from "../../../support/Use.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-deploy-"))
const anvil = use(() => startAnvil({ args: ["--disable-default-create2-deployer"] }))
let provider: JsonRpcProvider
beforeAll(async () => {
  provider = new NodeProvider(anvil.url, 31337, { staticNetwork: true, cacheTimeout: -1 })
})
afterAll(async () => {
  provider.destroy()
  rmSync(folder, { recursive: true })
})

const keys = [
  ["--deployer", devKeys.deployer.address],
  ["--owner", devKeys.factoryOwner.address],
  ["--beacon-owner", devKeys.beaconOwner.address],
  ["--sponsor", devKeys.sponsor.address]
].flat()

const out = join(folder, "network.json")
const deploy = (args: ReadonlyArray<string>, answer?: boolean) =>
  Effect.result(
    CommandLine.heard(
      ["deploy", "--rpc", anvil.url, ...keys, "--out", out, ...args],
      { PAYER: devKeys.faucet.privateKey, POOR: `0x${"77".repeat(32)}` },
      answer
    )
  )

const payer = ["--payer", "env:PAYER"]
interface Report {
  readonly plan: {
    readonly cost: string
    readonly steps: ReadonlyArray<{ name: string; state: string; address: string }>
  }
  readonly verified: ReadonlyArray<{ name: string; codeHash: string | null }>
  readonly profile: {
    networks: ReadonlyArray<Record<string, unknown>>
    accounts: ReadonlyArray<{ id: string }>
  }
}
const reportOf = (said: Effect.Success<ReturnType<typeof deploy>>): Report => {
  if (said._tag === "Failure") throw new Error(said.failure)
  return JSON.parse(said.success.stdout)
}
/** A connection to the node that is cut after this number of transactions. */
const cutAfter = async (transactions: number) => {
  let left = transactions
  const server = createServer((incoming, outgoing) => {
    const chunks: Array<Buffer> = []
    incoming.on("data", (chunk) => chunks.push(chunk))
    incoming.on("end", async () => {
      const body = Buffer.concat(chunks).toString()
      if (body.includes("eth_sendRawTransaction") && left-- <= 0) return outgoing.writeHead(503).end()
      const answer = await fetch(anvil.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body
      })
      outgoing.writeHead(200, { "content-type": "application/json" }).end(await answer.text())
    })
  })
  const port = await Port.listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => server.closeAllConnections()
  }
}

const balance = () => provider.getBalance(devKeys.faucet.address)

describe("castellan deploy on a chain with nothing on it", () => {
  it.effect("shows the plan with its cost, and sends no transaction in a dry run", () =>
    Effect.gen(function* () {
      const before = yield* Effect.promise(() => provider.getBlockNumber())
      const said = yield* deploy([...payer, "--dry-run"])
      expect(said._tag).toBe("Success")
      const text = JSON.stringify(said)
      for (const name of ["deterministic deployer", "EntryPoint v0.6", "Multicall3", "factory", "paymaster"])
        expect(text).toMatch(new RegExp(`${name} +0x[0-9a-fA-F]{40} +to deploy`))
      expect(text).toContain(devKeys.faucet.address)
      expect(yield* Effect.promise(() => provider.getBlockNumber())).toBe(before)
    })
  )

  it.effect("sends no transaction without confirmation, for an empty payer or without a payer", () =>
    Effect.gen(function* () {
      expect(yield* deploy(payer)).toMatchObject({ failure: expect.stringContaining("nothing was sent") })
      expect(yield* deploy(["--payer", "env:POOR", "--yes"])).toMatchObject({
        failure: expect.stringContaining("has 0.0, and the plan costs")
      })
      expect(yield* deploy(["--yes"])).toMatchObject({ failure: expect.stringContaining("--payer") })
      expect(yield* Effect.promise(() => provider.getBlockNumber())).toBe(0)
    })
  )

  it.effect("never repeats a payer's key, and names the expected form", () =>
    Effect.gen(function* () {
      const said = yield* deploy(["--payer", devKeys.faucet.privateKey, "--yes"])
      expect(said).toMatchObject({ failure: expect.stringContaining("env:NAME") })
      expect(JSON.stringify(said)).not.toContain(devKeys.faucet.privateKey.slice(2))
    })
  )

  it.effect("reports an unreachable node without its URL", () =>
    Effect.gen(function* () {
      const words = ["deploy", ...keys, "--dry-run", "--rpc"]
      const closed = `http://127.0.0.1:${yield* Effect.promise(Port.free)}`
      for (const [url, why] of [
        [
          "http://user:hunter2@127.0.0.1:9/v2/secret",
          "--rpc: expected an http or https URL without user information"
        ],
        ["http://[bad/v2/secret", "--rpc: expected an http or https URL without user information"],
        [`${closed}/v2/secret`, "the node does not answer: ECONNREFUSED"]
      ] as const)
        expect(yield* Effect.flip(CommandLine.run([...words, url], {}))).toBe(why)
    })
  )

  it.effect("resumes an interrupted run within the plan's cost", () =>
    Effect.gen(function* () {
      const half = yield* Effect.promise(balance)
      // After some blocks the node rejects everything, like a lost node.
      const cost = BigInt(reportOf(yield* deploy([...payer, "--dry-run", "--json"])).plan.cost)
      const stopped = yield* Effect.promise(async () => {
        const cut = await cutAfter(4)
        const result = await Effect.runPromise(
          Effect.result(
            CommandLine.heard(["deploy", "--rpc", cut.url, ...keys, "--out", out, ...payer, "--yes"], {
              PAYER: devKeys.faucet.privateKey
            })
          )
        )
        cut.close()
        return result
      })
      expect(stopped).toMatchObject({
        failure: expect.stringContaining("rerun the command to resume")
      })
      const before = yield* deploy([...payer, "--dry-run", "--json"])
      const states = reportOf(before).plan.steps.map(({ state }) => state)
      expect(states).toContain("there")
      expect(states).toContain("to deploy")
      const report = reportOf(yield* deploy([...payer, "--json"], true))
      expect(half - (yield* Effect.promise(balance))).toBeLessThan(cost)
      expect(report.verified.every(({ codeHash }) => codeHash !== null)).toBe(true)
    })
  )

  it.effect("deploys everything in place, and writes a network that the service reads", () =>
    Effect.gen(function* () {
      for (const address of [deterministicDeployer, ...Object.values(entryPoints), Multicall.address])
        expect(yield* Effect.promise(() => provider.getCode(address))).not.toBe("0x")
      const written = JSON.parse(readFileSync(out, "utf8"))
      const [network] = written.networks
      const config = yield* Effect.fromResult(
        Config.fromText(
          JSON.stringify({
            profile: "production",
            listen: { host: "127.0.0.1", port: 0 },
            database: { path: join(folder, "castellan.sqlite") },
            keyPepper: { env: "PEPPER" },
            allowPrivateKeys: true,
            accounts: [],
            systemKeys: { sponsor: { env: "SPONSOR" } },
            networks: written.networks
          }),
          "of the test",
          {
            PEPPER: "a pepper that only this test uses",
            CASTELLAN_RPC_31337: anvil.url,
            SPONSOR: devKeys.sponsor.privateKey
          },
          folder
        )
      )
      const profile = config.networks.find(({ chainId }) => chainId === 31337n)
      expect(profile).toMatchObject({ factory: network.factory, ledger: network.ledger })
      const factory = new Contract(network.factory, ["function beacon() view returns (address)"], provider)
      expect(yield* Effect.promise(() => factory.getFunction("beacon")())).toBe(profile?.beacon)
    })
  )

  it.effect("a complete deployment costs nothing and needs no payer", () =>
    Effect.gen(function* () {
      const before = yield* Effect.promise(balance)
      const report = reportOf(yield* deploy(["--json"]))
      expect(report.plan.cost).toBe("0")
      expect(yield* Effect.promise(balance)).toBe(before)
    })
  )

  it.effect("gives each account its own factory on the shared beacon", () =>
    Effect.gen(function* () {
      const report = reportOf(
        yield* deploy([...payer, "--account", "a", "--account", "b", "--yes", "--json"])
      )
      const factories = report.plan.steps.filter(({ name }) => name.startsWith("factory of "))
      expect(new Set(factories.map(({ address }) => address)).size).toBe(2)
      expect(factories.map(({ state }) => state)).toEqual(["to deploy", "to deploy"])
      expect(report.profile.accounts.map(({ id }) => id)).toEqual(["a", "b"])
      expect(report.profile.networks[0]).not.toHaveProperty("factory")
    })
  )

  it.effect("completes the configuration that castellan init has written, and keeps its comments", () =>
    Effect.gen(function* () {
      const file = join(folder, "castellan.jsonc")
      yield* CommandLine.run(["init", "--rpc", anvil.url, "--account", "a", "--out", file], {})
      const before = readFileSync(file, "utf8")
      const words = ["deploy", "--chain", "31337", ...keys, "--account", "a", "--config", file]
      const report: Report = JSON.parse(yield* CommandLine.run([...words, "--json"], {}))
      const text = readFileSync(file, "utf8")
      expect(text.match(/\/\/.*/g)).toEqual(before.match(/\/\/.*/g))
      const config = yield* Effect.fromResult(Config.load({ CASTELLAN_CONFIG: file }))
      const [network] = report.profile.networks
      const profile = config.networks.find(({ chainId }) => chainId === 31337n)
      expect(profile).toMatchObject({ ledger: network?.ledger, beacon: network?.beaconAdminAddress })
      expect(profile?.rpc).not.toBeNull()
      const [own] = config.accountNetworks
      expect(own).toMatchObject({ accountId: "a" })
      expect(JSON.stringify(report.profile.accounts)).toContain(own?.profile.factory)

      yield* CommandLine.run(words, {})
      expect(readFileSync(file, "utf8")).toBe(text)
      expect(
        yield* Effect.flip(CommandLine.run(["deploy", "--account", "z", ...words.slice(1)], {}))
      ).toContain("has no account z")
      for (const [node, message] of [
        [["--chain", "137"], "no node of chain 137"],
        [["--chain", "137", "--rpc", anvil.url], "expected --rpc URL, or --chain CHAIN"],
        [[], "expected --rpc URL, or --chain CHAIN"]
      ] as const)
        expect(
          yield* Effect.flip(CommandLine.run(["deploy", ...node, ...keys, "--config", file], {}))
        ).toContain(message)
    })
  )

  it.effect("refuses foreign code at its addresses", () =>
    Effect.gen(function* () {
      const ledger = reportOf(yield* deploy(["--json"])).plan.steps.find(({ name }) => name === "ledger")
      const code = yield* Effect.promise(() => provider.getCode(ledger?.address ?? ""))
      yield* Effect.promise(() => provider.send("anvil_setCode", [ledger?.address, `${code.slice(0, -2)}ff`]))
      expect(yield* deploy([])).toMatchObject({ failure: expect.stringContaining("the code differs from") })
      yield* Effect.promise(() => provider.send("anvil_setCode", [ledger?.address, code]))
    })
  )
})
