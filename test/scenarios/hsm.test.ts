import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { Contract, computeAddress, type JsonRpcProvider, parseEther, recoverAddress } from "ethers"
import * as DevChain from "../../src/hosts/cli/dev/DevChain.js"
import { devKeys } from "../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../src/hosts/cli/support/NodeProvider.js"
import * as Config from "../../src/hosts/config/Config.js"
import * as KeyProviders from "../../src/hosts/config/KeyProviders.js"
import * as Service from "../../src/hosts/node/Service.js"
import * as Wiring from "../../src/hosts/Wiring.js"
import { walletProxyCreationCode } from "../../src/index.js"
import { startNode } from "../../tools/PreparedChain.js"
import * as SoftHsm from "../adapters/keys/pkcs11/SoftHsm.js"
import * as Leaks from "../support/Leaks.js"

/** Every key of the service is on the token: those of the account, the deployer's and the service's own. */
const hsm = SoftHsm.make()
const labels = ["acme-1", "acme-2", "deployer", "service"]

const leaks = Leaks.make()
const scope = Effect.runSync(Scope.make())
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Scope.provide(Effect.provide(effect, leaks.layer), scope))

let chain: DevChain.DevChain
let provider: JsonRpcProvider
let apiKey = ""
let url = ""

const pepper = "a pepper of many bytes"

const configuration = (hash: string) => ({
  profile: "development",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: join(hsm.folder, "castellan.sqlite") },
  keyPepper: pepper,
  accounts: [{ id: "acme", name: "Acme", tier: "enterprise", keys: [{ hash }] }],
  providers: [
    { kind: "pkcs11", name: "hsm", module: SoftHsm.library, token: hsm.token, pin: { env: "PIN" } }
  ],
  signers: ["1", "2"].map((versionId) => ({
    accounts: ["acme"],
    clientId: "acme",
    versionId,
    provider: "hsm",
    key: `acme-${versionId}`
  })),
  systemKeys: {
    deployer: { provider: "hsm", key: "deployer" },
    serviceEoa: { provider: "hsm", key: "service" }
  },
  networks: [
    {
      chainId: chain.chainId,
      rpc: chain.url,
      factory: chain.suite.factory,
      sharedFactory: true,
      validator: chain.suite.validator,
      beaconAdminAddress: chain.suite.beacon,
      beaconAdminCreationCode: walletProxyCreationCode,
      implementationCodeHash: chain.implementationCodeHash,
      pollIntervalMillis: 50
    }
  ]
})

/** The deployer's address, which the chain must know; read by the operator's command. */
const addressOf = (label: string, config: Config.Config) =>
  Effect.scoped(
    Effect.gen(function* () {
      const [token] = config.keys.providers
      if (token === undefined) return yield* Effect.die(new Error("no provider"))
      const { key } = yield* KeyProviders.provider(token).open
      return computeAddress(`0x${yield* key(label).publicKey}`)
    })
  )

beforeAll(async () => {
  SoftHsm.within(hsm, (pkcs11, session) => {
    for (const label of labels) SoftHsm.generate(pkcs11, session, label)
  })
  chain = await run(DevChain.start({ port: 0, chainId: 31_337, blockTime: null, startNode }))
  provider = new NodeProvider(chain.url, undefined, { cacheTimeout: -1, staticNetwork: true })
  const issued = await run(Wiring.issueKey(Redacted.make(pepper)))
  apiKey = Redacted.value(issued.key)
  const config = Result.getOrThrowWith(
    Config.fromText(JSON.stringify(configuration(issued.hash)), "test.json", { PIN: hsm.pin }, hsm.folder),
    (error) => error
  )
  const factory = new Contract(
    chain.suite.factory,
    ["function setDeployer(address)"],
    devKeys.factoryOwner.connect(provider)
  )
  await fund(devKeys.factoryOwner.address)
  const changed = await factory.getFunction("setDeployer")(await run(addressOf("deployer", config)))
  await changed.wait()
  url = (await run(Service.start(config))).url
})

afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  provider.destroy()
  hsm.remove()
})

const fund = (address: string) =>
  provider.send("anvil_setBalance", [address, `0x${parseEther("1").toString(16)}`])

const ask = async (path: string, body: unknown) => {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": apiKey },
    body: JSON.stringify(body)
  })
  const text = await answer.text()
  leaks.keep(path, text)
  return { status: answer.status, body: JSON.parse(text) }
}

const settings = (versionId: string) => ({
  rpc: chain.url,
  entryPoint: chain.entryPoints["v0.7"],
  signer: { clientId: "acme", versionId }
})

const recipient = `0x${"77".repeat(20)}`

describe("a service whose keys are all in an HSM", () => {
  it("reports its signers as HSM, each with a separate address", async () => {
    const told = await Promise.all(
      ["1", "2"].map((versionId) => ask("/getSigner", { signer: { clientId: "acme", versionId } }))
    )
    for (const { body, status } of told)
      expect({ status, type: body.type }).toEqual({ status: 200, type: "HSM" })
    expect(told[0]?.body.address).not.toBe(told[1]?.body.address)
  })

  it("creates wallets by authorisation of the deployer in the HSM, and executes, each at its first attempt", async () => {
    for (const versionId of ["1", "2"]) {
      const signer = (await ask("/getSigner", { signer: { clientId: "acme", versionId } })).body
      await fund(signer.address)
      const accounts = [1, 2].map((n) => ({ salt: `hsm ${versionId} ${n}`, walletCustody: 1 }))
      const predicted = await ask("/predict", {
        accounts,
        settings: {
          factory: chain.suite.factory,
          beaconAdminAddress: chain.suite.beacon,
          beaconAdminCreationCode: walletProxyCreationCode
        }
      })
      for (const { wallet } of predicted.body) await fund(wallet)
      const before = await provider.getBalance(recipient)

      const created = await ask("/create", { accounts, settings: settings(versionId) })
      expect(created).toMatchObject({ status: 200, body: { status: 1 } })
      for (const { wallet } of predicted.body) expect(await provider.getCode(wallet)).not.toBe("0x")

      const operations = accounts.map((account, n) => ({
        ...account,
        to: recipient,
        funcSignature: "receive()",
        value: String(n + 1)
      }))
      const executed = await ask("/execute", { operations, settings: settings(versionId) })
      expect(executed).toMatchObject({ status: 200, body: { status: 1 } })
      const mined = await provider.getTransaction(executed.body.txHash)
      expect(mined?.from).toBe(signer.address)
      expect((await provider.getBalance(recipient)) - before).toBe(3n)
    }
  })

  it("signs messages, which recover to the signer", async () => {
    const messages = Array.from({ length: 20 }, (_, n) => `0x${n.toString(16).padStart(64, "0")}`)
    const signer = { clientId: "acme", versionId: "1" }
    const signed = await ask("/sign", { messages, hashed: true, signer })
    const { address } = (await ask("/getSigner", { signer })).body
    expect(signed.status).toBe(200)
    expect(
      signed.body[0].signatures.map((each: { r: string; s: string; v: number }, n: number) =>
        recoverAddress(messages[n] ?? "", each)
      )
    ).toEqual(messages.map(() => address))
  })

  it("continues after the HSM has closed its sessions", async () => {
    const pkcs11 = SoftHsm.loaded()
    pkcs11.C_CloseAllSessions(SoftHsm.slotOf(pkcs11, hsm.token))
    const operations = [
      { salt: "hsm 1 1", walletCustody: 1, to: recipient, funcSignature: "receive()", value: "5" }
    ]
    const executed = await ask("/execute", { operations, settings: settings("1") })
    expect(executed).toMatchObject({ status: 200, body: { status: 1 } })
  })

  it("shows no PIN anywhere", () => {
    expect(leaks.counts().log).toBeGreaterThan(3)
    expect(leaks.found({ pin: hsm.pin })).toEqual([])
  })
})
