import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import type { JsonRpcProvider } from "ethers"
import * as DevChain from "../../../src/hosts/cli/dev/DevChain.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import * as Config from "../../../src/hosts/config/Config.js"
import * as Inspections from "../../../src/hosts/Inspections.js"
import * as Service from "../../../src/hosts/node/Service.js"
import { startNode } from "../../../tools/PreparedChain.js"
import * as CommandLine from "../../support/process/CommandLine.js"
import * as Port from "../../support/process/Port.js"
import { runSource } from "../../support/process/Program.js"
import { refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-inspection-"))
const scope = Effect.runSync(Scope.make())
let dev: DevChain.DevChain
let provider: JsonRpcProvider
let poor: { readonly url: string; readonly close: () => void }

/** A node without eth_simulateV1 and other optional features. */
const poorNode = async (target: string) => {
  const answerOf = (body: string): string | null => {
    const call: { id: unknown; method: string; params: ReadonlyArray<{ to?: string }> } = JSON.parse(body)
    const error = (code: number, message: string) =>
      JSON.stringify({ jsonrpc: "2.0", id: call.id, error: { code, message } })
    if (call.method === "eth_simulateV1") return error(-32601, "the method eth_simulateV1 does not exist")
    if (call.method === "eth_call" && call.params.length > 2)
      return error(-32602, "too many arguments, want at most 2")
    if (call.method === "eth_call" && Number(call.params[0]?.to) === 256)
      return JSON.stringify({ jsonrpc: "2.0", id: call.id, result: "0x" })
    return null
  }
  const server = createServer((incoming, outgoing) => {
    const chunks: Array<Buffer> = []
    incoming.on("data", (chunk) => chunks.push(chunk))
    incoming.on("end", async () => {
      const said: unknown = JSON.parse(Buffer.concat(chunks).toString())
      const calls = (Array.isArray(said) ? said : [said]).map((call) => JSON.stringify(call))
      const answers = await Promise.all(
        calls.map(async (body) => {
          const own = answerOf(body)
          if (own !== null) return own
          const headers = { "content-type": "application/json" }
          return (await fetch(target, { method: "POST", headers, body })).text()
        })
      )
      outgoing
        .writeHead(200, { "content-type": "application/json" })
        .end(Array.isArray(said) ? `[${answers.join()}]` : answers[0])
    })
  })
  const port = await Port.listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

beforeAll(async () => {
  const starting = DevChain.start({ port: 0, chainId: 31337, blockTime: null, startNode })
  dev = await Effect.runPromise(Scope.provide(starting, scope))
  provider = new NodeProvider(dev.url, 31337, { staticNetwork: true })
  poor = await poorNode(dev.url)
})
afterAll(async () => {
  poor.close()
  provider.destroy()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true })
})

const network = () => ({
  chainId: 31337,
  rpc: dev.url,
  factory: dev.suite.factory,
  validator: dev.suite.validator,
  beaconAdminAddress: dev.suite.beacon,
  ledger: dev.suite.ledger,
  sponsor: { paymaster: dev.suite.paymaster, dailyBudget: "1" },
  implementationCodeHash: dev.implementationCodeHash
})

const file = (networks: ReadonlyArray<object>, more: object = {}) => ({
  profile: "development",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: join(folder, "never.sqlite") },
  keyPepper: "a pepper that only this test uses",
  accounts: [],
  systemKeys: {
    deployer: devKeys.deployer.privateKey,
    serviceEoa: devKeys.serviceEoa.privateKey,
    sponsor: devKeys.sponsor.privateKey
  },
  networks,
  ...more
})

const inspect = (networks: ReadonlyArray<object>, more?: object) =>
  Effect.flatMap(
    Effect.fromResult(Config.fromText(JSON.stringify(file(networks, more)), "of the test", {}, folder)),
    Inspections.run
  )

const messages = (found: ReadonlyArray<Inspections.ReportLine>) =>
  found.map(({ message, severity }) => `${severity}: ${message}`).join("\n")

const nobody = "0x1000000000000000000000000000000000000001"

describe("problems of a network", () => {
  it.live("a chain of the suite has no problems except its node's limits", () =>
    Effect.gen(function* () {
      const found = yield* inspect([network()])
      expect(messages(found.filter(({ severity }) => severity === "broken"))).toBe("")
      expect(messages(found)).not.toContain("eth_simulateV1")
      expect(messages(found)).not.toContain("overrides")
    })
  )

  it.live("problems of code, beacon, factory, paymaster, ledger, keys and funds appear together", () =>
    Effect.gen(function* () {
      const told = messages(
        yield* inspect(
          [
            {
              ...network(),
              validator: nobody,
              ledger: nobody,
              implementationCodeHash: `0x${"12".repeat(32)}`,
              topUp: {
                keep: 0,
                dailyCap: 1,
                targets: [{ to: devKeys.signer.address, below: 1, upTo: 2, dailyCap: 1 }]
              }
            }
          ],
          {
            systemKeys: {
              deployer: devKeys.factoryOwner.privateKey,
              serviceEoa: `0x${"77".repeat(32)}`,
              sponsor: devKeys.beaconOwner.privateKey,
              treasury: devKeys.signer.privateKey
            }
          }
        )
      )
      expect(told).toContain(`has the code hash ${dev.implementationCodeHash}, not 0x1212`)
      expect(told).toContain(`names the validator ${dev.suite.validator}, not ${nobody}`)
      expect(told).toContain(`the ledger ${nobody} has no code`)
      expect(told).toContain(`systemKeys.deployer is ${devKeys.factoryOwner.address}`)
      expect(told).toContain(`systemKeys.sponsor is ${devKeys.beaconOwner.address}`)
      expect(told).toContain("topUp: the treasury is a target: nothing is topped up")
      expect(told).toContain("has no balance to pay gas with")
      expect(told).not.toContain("77".repeat(32))
    })
  )

  it.live("an account's signer without funds is reported for its chain", () =>
    Effect.gen(function* () {
      const signer = (versionId: string, privateKey: string) => ({
        accounts: ["acme"],
        clientId: "acme",
        versionId,
        privateKey
      })
      const told = yield* inspect([network()], {
        accounts: [{ id: "acme", name: "Acme", tier: "free", keys: [] }],
        signers: [signer("rich", devKeys.signer.privateKey), signer("poor", `0x${"78".repeat(32)}`)]
      })
      const poor = told.filter(({ message }) => message.includes("no balance to pay gas with"))
      expect(poor.map(({ severity }) => severity)).toEqual(["limited"])
      expect(messages(poor)).toMatch(/the signer acme poor of acme, 0x[0-9a-fA-F]{40}, has no balance/)
      expect(messages(told)).not.toContain("78".repeat(32))
    })
  )

  it.live("a contract of another kind or without code is reported", () =>
    Effect.gen(function* () {
      const told = messages(
        yield* inspect([
          {
            ...network(),
            factory: dev.suite.ledger,
            beaconAdminAddress: nobody,
            sponsor: { paymaster: dev.token, dailyBudget: "1" }
          }
        ])
      )
      expect(told).toContain(`${dev.suite.ledger} is not a factory of this suite`)
      expect(told).toContain(`beaconAdminAddress ${nobody} is not a beacon`)
      expect(told).toContain(`${dev.token} is not a SponsorPaymaster`)
    })
  )

  it.live("a daily budget that covers no operation is reported", () =>
    Effect.gen(function* () {
      const sponsoring = (dailyBudget?: string) =>
        Effect.map(
          inspect([{ ...network(), sponsor: { paymaster: dev.suite.paymaster, dailyBudget } }]),
          messages
        )
      for (const none of ["0", undefined])
        expect(yield* sponsoring(none)).toContain("limited: sponsor.dailyBudget is 0: nothing is sponsored")
      expect(yield* sponsoring("1")).toMatch(/limited: sponsor.dailyBudget is 1 wei, and no operation costs/)
      expect(yield* sponsoring("1000000000000000000")).not.toContain("dailyBudget")
    })
  )

  it.live("a price written in gwei or rejected by the chain is reported", () =>
    Effect.gen(function* () {
      const priced = (fields: object) => Effect.map(inspect([{ ...network(), ...fields }]), messages)
      yield* Effect.promise(() => provider.send("anvil_setNextBlockBaseFeePerGas", ["0x3b9aca00"]))
      yield* Effect.promise(() => provider.send("anvil_mine", ["0x1"]))
      const tooLow = yield* priced({ maxFeePerGas: "50", maxPriorityFeePerGas: "30" })
      expect(tooLow).toMatch(
        /broken: maxFeePerGas is 50 wei, less than the \d{9,} wei that the chain asks for now: .*50 gwei are 50000000000$/m
      )
      expect(tooLow).toMatch(/limited: maxPriorityFeePerGas is 30 wei; it looks like gwei: .*30000000000/)
      const between = yield* priced({ maxFeePerGas: "200000000", maxPriorityFeePerGas: "1000000" })
      expect(between).toMatch(
        /broken: maxFeePerGas is 200000000 wei, less than .*: nothing is sent\. Raise it$/m
      )
      const least = yield* priced({ minPriorityFeePerGas: "25000000000", maxPriorityFeePerGas: "30" })
      expect(least).toMatch(
        /broken: maxPriorityFeePerGas is 30 wei, less than minPriorityFeePerGas, 25000000000 wei/
      )
      expect(yield* priced({ minPriorityFeePerGas: "25" })).toMatch(/limited: minPriorityFeePerGas is 25 wei/)
      const meant = { maxFeePerGas: "50000000000", maxPriorityFeePerGas: "0" }
      expect(yield* priced(meant)).not.toMatch(/PerGas/)
    })
  )

  it.live("an unset OP-stack layer 1 fee and a missing oracle are reported", () =>
    Effect.gen(function* () {
      const oracle = "0x420000000000000000000000000000000000000F"
      const told = (fields: object) => Effect.map(inspect([{ ...network(), ...fields }]), messages)
      expect(yield* told({})).not.toContain("l1Fee")
      expect(yield* told({ l1Fee: "op-stack" })).toContain(
        `broken: l1Fee is "op-stack", and the chain has no oracle at ${oracle}`
      )
      yield* Effect.promise(() => provider.send("anvil_setCode", [oracle, "0x600160005260206000f3"]))
      expect(yield* told({ l1Fee: "op-stack" })).not.toContain("l1Fee")
      for (const fields of [{}, { l1Fee: null }])
        expect(yield* told(fields)).toMatch(/limited: l1Fee is not set, .*Set "l1Fee": "op-stack"/)
      yield* Effect.promise(() => provider.send("anvil_setCode", [oracle, "0x"]))
    })
  )

  it.live("an EntryPoint without code is reported", () =>
    Effect.gen(function* () {
      const [entryPoint] = Object.values(dev.entryPoints)
      const code = yield* Effect.promise(() => provider.getCode(entryPoint ?? ""))
      yield* Effect.promise(() => provider.send("anvil_setCode", [entryPoint, "0x"]))
      const told = messages(yield* inspect([network()]))
      yield* Effect.promise(() => provider.send("anvil_setCode", [entryPoint, code]))
      expect(told).toContain(`broken: EntryPoint v0.6 at ${entryPoint} has no code`)
    })
  )

  it.live("a node of another chain and an unreachable node have separate messages", () =>
    Effect.gen(function* () {
      const told = yield* inspect([
        { chainId: 137, rpc: dev.url },
        { chainId: 80_002, rpc: "http://127.0.0.1:9/secret-of-the-path" }
      ])
      expect(told.map(({ place }) => place).sort()).toEqual(["chain 137", "chain 80002"])
      expect(messages(told)).toContain("serves chain 31337")
      expect(messages(told)).toContain("the node at http://127.0.0.1:9 does not answer")
      expect(messages(told)).not.toContain("secret-of-the-path")
    })
  )

  it.live("network problems are found with the usable keys, and unusable keys are reported", () =>
    Effect.gen(function* () {
      const told = yield* inspect([{ ...network(), validator: nobody }], {
        providers: [{ kind: "pkcs11", name: "hsm", module: "/nowhere/hsm.so", token: "none", pin: "0000" }],
        systemKeys: {
          deployer: devKeys.factoryOwner.privateKey,
          serviceEoa: { provider: "hsm", key: "none" },
          sponsor: devKeys.factoryOwner.privateKey
        }
      })
      expect(told.filter(({ place }) => place === "keys")).toHaveLength(2)
      expect(messages(told)).toMatch(/broken: .*serviceEoa.*provider "hsm"/)
      expect(messages(told)).toMatch(/broken: .*deployer.*sponsor/)
      expect(messages(told)).toContain(`systemKeys.deployer is ${devKeys.factoryOwner.address}`)
      expect(messages(told)).toContain(`names the validator ${dev.suite.validator}, not ${nobody}`)
    })
  )

  it.live("problems are reported from all replies of a node that refuses others", () =>
    Effect.gen(function* () {
      const moody = yield* Effect.promise(() => startFaultyNode(dev.url))
      moody.behave((question, ask) =>
        question.method === "eth_getBalance" ? Promise.resolve(refusal(-32000, "no balances today")) : ask()
      )
      const told = messages(yield* inspect([{ ...network(), rpc: moody.url, ledger: nobody }]))
      yield* Effect.promise(() => moody.stop())
      expect(told).toContain("no balances today")
      expect(told).toContain(`the ledger ${nobody} has no code`)
    })
  )

  it.live("limits of a node are reported with their consequences", () =>
    Effect.gen(function* () {
      const told = messages(yield* inspect([{ ...network(), rpc: poor.url }]))
      expect(told).toMatch(/limited: .* has no eth_simulateV1: .*the service's own EOA does not/)
      expect(told).toMatch(/limited: .* takes no state overrides/)
      expect(told).toMatch(/limited: .*no P-256 precompile/)
      expect(told).not.toContain("broken")
    })
  )
})

describe("the start of a service", () => {
  const away = { rpc: "http://127.0.0.1:9/", redis: "redis://127.0.0.1:9" }

  it.live("a refused start reports the other problems too", () =>
    Effect.gen(function* () {
      const url = "postgres://nobody@127.0.0.1:9/none"
      const text = JSON.stringify(
        file([{ ...network(), rpc: away.rpc }], { database: { url }, rateLimit: { redis: away.redis } })
      )
      const path = join(folder, "refused.json")
      writeFileSync(path, text)
      const process = yield* Effect.promise(() =>
        runSource("src/hosts/node/main.ts", [], { env: { CASTELLAN_CONFIG: path } })
      )
      expect(yield* Effect.promise(() => process.ended)).toBe(1)
      const [reason, beside, ...others] = process.stderr().trim().split("\n")
      expect(reason).toContain("cannot use the PostgreSQL server at 127.0.0.1")
      expect(beside).toBe("beside that:")
      expect(others.join("\n")).toContain("  rateLimit.redis: Redis does not answer")
      expect(others.join("\n")).toContain("  chain 31337: the node at http://127.0.0.1:9 does not answer")
      expect(others.join("\n")).not.toContain("PostgreSQL")
    })
  )

  it.live("an unreachable Redis is logged", () =>
    Effect.gen(function* () {
      const config = yield* Effect.fromResult(
        Config.fromText(
          JSON.stringify(
            file([network()], {
              database: { path: join(folder, "started.sqlite") },
              rateLimit: { redis: away.redis }
            })
          ),
          "of the test",
          {},
          folder
        )
      )
      const told = yield* Deferred.make<void>()
      const listen = Logger.make(({ message }) => {
        if (String(message).includes("rateLimit.redis: Redis does not answer"))
          Deferred.doneUnsafe(told, Exit.void)
      })
      const started = Effect.andThen(Service.start(config, { inspect: true }), Deferred.await(told))
      yield* Effect.provide(Effect.scoped(started), Logger.layer([listen], { mergeWithExisting: true }))
    })
  )
})

describe("castellan config check --connect", () => {
  const check = (content: object, ...args: ReadonlyArray<string>) => {
    const path = join(folder, "castellan.json")
    writeFileSync(path, JSON.stringify(content))
    return Effect.result(CommandLine.run(["config", "check", path, "--connect", ...args], {}))
  }

  it.live("succeeds with notes on limits", () =>
    Effect.gen(function* () {
      const said = yield* check(file([{ ...network(), rpc: poor.url }]))
      expect(said).toMatchObject({ success: expect.stringMatching(/note +chain 31337: .*eth_simulateV1/) })
    })
  )

  it.live("shows the chains of the file, and notes chains without configuration", () =>
    Effect.gen(function* () {
      const said = yield* check(file([network(), { chainId: 137, rpc: poor.url }]), "--json")
      expect(said).toMatchObject({ failure: expect.stringContaining("chain 137") })
      const found = yield* check(file([network()]), "--json")
      if (found._tag === "Failure") throw new Error(found.failure)
      expect(JSON.parse(found.success)).toMatchObject({
        networks: [31337],
        unconfigured: [80002, 137, 84532, 8453]
      })
      expect(yield* check(file([network()]))).toMatchObject({
        success: expect.stringMatching(
          /networks {2}31337\n {2}note {6}networks: .* no entry, 80002, 137, 84532, 8453:/
        )
      })
    })
  )

  it.live("fails on a database file that it cannot open, and creates no file", () =>
    Effect.gen(function* () {
      const path = join(folder, "nowhere/castellan.sqlite")
      const said = yield* check(file([network()], { database: { path } }))
      expect(said).toMatchObject({
        failure: expect.stringContaining(`database: cannot open the database file ${path} (ENOENT)`)
      })
      expect(yield* check(file([network()]))).toMatchObject({ _tag: "Success" })
      expect(existsSync(join(folder, "never.sqlite"))).toBe(false)
    })
  )
})
