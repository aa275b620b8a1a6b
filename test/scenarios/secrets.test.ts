import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { computeAddress } from "ethers"
import * as DevChain from "../../src/hosts/cli/dev/DevChain.js"
import { devKeys } from "../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../src/hosts/cli/support/NodeProvider.js"
import * as Config from "../../src/hosts/config/Config.js"
import * as Service from "../../src/hosts/node/Service.js"
import * as Wiring from "../../src/hosts/Wiring.js"
import * as CountingProxy from "../../tools/CountingProxy.js"
import { startNode } from "../../tools/PreparedChain.js"
import * as Leaks from "../support/Leaks.js"
import { keystore } from "../support/signing/Keystores.js"

const text = () => randomBytes(24).toString("hex")
const privateKey = () => `0x${randomBytes(32).toString("hex")}`

const owner = privateKey()
const stored = privateKey()
const secrets = {
  pepper: text(),
  "private key": owner,
  "key in a keystore": stored,
  "password of a keystore": text(),
  "wrong password": text(),
  "key of the deployer": devKeys.deployer.privateKey,
  "key of the service's EOA": devKeys.serviceEoa.privateKey,
  "access key of a KMS": text(),
  "secret key of a KMS": text(),
  "half a private key": randomBytes(31).toString("hex"),
  "path of the operator's RPC": text(),
  "path of the caller's RPC": text()
}

const folder = mkdtempSync(join(tmpdir(), "castellan-secrets-"))
writeFileSync(
  join(folder, "key.json"),
  Redacted.value(keystore(stored, secrets["password of a keystore"]).json)
)

const leaks = Leaks.make()
const scope = Effect.runSync(Scope.make())
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Scope.provide(Effect.provide(effect, leaks.layer), scope))

let chain: DevChain.DevChain
let proxy: CountingProxy.CountingProxy
let apiKey: string
let url = ""

afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true })
})

const env = {
  PEPPER: secrets.pepper,
  OWNER: secrets["private key"],
  PASSWORD: secrets["password of a keystore"],
  WRONG: secrets["wrong password"],
  DEPLOYER: secrets["key of the deployer"],
  EOA: secrets["key of the service's EOA"],
  ID: secrets["access key of a KMS"],
  SECRET: secrets["secret key of a KMS"],
  HALF: secrets["half a private key"]
}

const kms = {
  kind: "aws-kms",
  name: "kms",
  region: "eu-central-1",
  // No process listens on the port of tcpmux.
  endpoint: "http://127.0.0.1:1",
  credentials: { accessKeyId: { env: "ID" }, secretAccessKey: { env: "SECRET" } }
}
const files = {
  kind: "private-key",
  name: "files",
  keys: [{ name: "stored", keystore: "key.json", password: { env: "PASSWORD" } }]
}

const configuration = (hash: string) => ({
  profile: "development",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: join(folder, "castellan.sqlite") },
  keyPepper: { env: "PEPPER" },
  accounts: [{ id: "acme", name: "Acme", tier: "enterprise", keys: [{ hash }] }],
  providers: [kms, files],
  signers: [
    { accounts: ["acme"], clientId: "acme", versionId: "1", privateKey: { env: "OWNER" } },
    { accounts: ["acme"], clientId: "acme", versionId: "2", provider: "files", key: "stored" },
    {
      accounts: ["acme"],
      clientId: "acme",
      versionId: "3",
      provider: "kms",
      key: "alias/down",
      address: `0x${"12".repeat(20)}`
    }
  ],
  systemKeys: { deployer: { env: "DEPLOYER" }, serviceEoa: { env: "EOA" } },
  networks: [
    {
      chainId: chain.chainId,
      rpc: `${proxy.url}/${secrets["path of the operator's RPC"]}`,
      factory: chain.suite.factory,
      sharedFactory: true,
      validator: chain.suite.validator,
      beaconAdminAddress: chain.suite.beacon,
      implementationCodeHash: chain.implementationCodeHash,
      pollIntervalMillis: 50
    }
  ]
})

type File = ReturnType<typeof configuration>
const read = (file: unknown, variables: Readonly<Record<string, string>> = env) =>
  Config.fromText(JSON.stringify(file), "test.json", variables, folder)

beforeAll(async () => {
  chain = await run(DevChain.start({ port: 0, chainId: 31_337, blockTime: null, startNode }))
  proxy = await run(CountingProxy.start(chain.url))
  const issued = await run(Wiring.issueKey(Redacted.make(secrets.pepper)))
  apiKey = Redacted.value(issued.key)
  const config = Result.getOrThrowWith(read(configuration(issued.hash)), (error) => error)
  leaks.keep("configuration", config)
  url = (await run(Service.start(config))).url
  const provider = new NodeProvider(chain.url)
  for (const key of [owner, stored])
    await provider.send("anvil_setBalance", [computeAddress(key), "0xde0b6b3a7640000"])
  provider.destroy()
})

const ask = async (path: string, body: unknown, key = apiKey): Promise<{ status: number; text: string }> => {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: typeof body === "string" ? body : JSON.stringify(body)
  })
  const answered = await answer.text()
  leaks.keep(`answer of ${path}`, answered)
  leaks.keep(`headers of ${path}`, [...answer.headers])
  return { status: answer.status, text: answered }
}

const settings = (versionId: string) => ({
  rpc: `${proxy.url}/${secrets["path of the caller's RPC"]}`,
  entryPoint: chain.entryPoints["v0.7"],
  signer: { clientId: "acme", versionId }
})

const fund = async (address: string) => {
  const provider = new NodeProvider(chain.url)
  await provider.send("anvil_setBalance", [address, "0xde0b6b3a7640000"])
  provider.destroy()
}

describe("a run of the service", () => {
  it("tells the keys that it signs with by their addresses", async () => {
    for (const [versionId, key] of [
      ["1", owner],
      ["2", stored]
    ] as const) {
      const { status, text } = await ask("/getSigner", { signer: { clientId: "acme", versionId } })
      expect(status).toBe(200)
      expect(JSON.parse(text)).toMatchObject({ address: computeAddress(key), type: "PRIVATE_KEY" })
    }
    expect((await ask("/getbundleraddress", {})).text).toContain(devKeys.serviceEoa.address)
  })

  it("creates wallets and executes with keys in memory and in a keystore", async () => {
    for (const versionId of ["1", "2"]) {
      const accounts = [{ salt: `secret ${versionId}`, walletCustody: 1 }]
      const predicted = await ask("/predict", {
        accounts,
        settings: {
          factory: chain.suite.factory,
          beaconAdminAddress: chain.suite.beacon,
          beaconAdminCreationCode: (await import("../../src/index.js")).walletProxyCreationCode
        }
      })
      await fund(JSON.parse(predicted.text)[0].wallet)
      const created = await ask("/create", { accounts, settings: settings(versionId) })
      expect(JSON.parse(created.text)).toMatchObject({ status: 1 })
      const operations = [
        { ...accounts[0], to: `0x${"77".repeat(20)}`, funcSignature: "receive()", value: "1" }
      ]
      const executed = await ask("/execute", { operations, settings: settings(versionId) })
      expect(JSON.parse(executed.text)).toMatchObject({ status: 1 })
    }
  })

  it("answers 422 signer unavailable for a provider that is down, without the cause", async () => {
    const { status, text } = await ask("/getSigner", { signer: { clientId: "acme", versionId: "3" } })
    expect({ status, ...JSON.parse(text) }).toMatchObject({
      status: 422,
      error: "signer unavailable",
      code: "signer_unavailable",
      details: [{ path: "signer", message: "the key provider did not answer" }]
    })
  })

  it("refuses invalid requests", async () => {
    const operations = [
      { salt: "x", walletCustody: 1, to: `0x${"77".repeat(20)}`, funcSignature: "receive()" }
    ]
    const asked: ReadonlyArray<readonly [number, string, unknown, string?]> = [
      [401, "/getSigner", { signer: { clientId: "acme", versionId: "9" } }],
      [401, "/getSigner", { signer: { clientId: "deployer", versionId: "1" } }],
      [401, "/getSigner", { signer: { clientId: "acme", versionId: "1" } }, `${apiKey}x`],
      [400, "/getSigner", `{"signer": "${secrets.pepper.slice(0, 3)}`],
      [422, "/execute", { operations, settings: settings("1") }],
      [400, "/execute", { operations, settings: { ...settings("1"), rpc: "http://127.0.0.1:1/x" } }],
      [400, "/execute", { operations, settings: { ...settings("1"), colour: 1 } }]
    ]
    for (const [status, path, body, key] of asked) {
      const answer = await ask(path, body, key)
      expect({ path, status: answer.status, text: answer.text }).toMatchObject({ path, status })
    }
  })

  it("refuses configurations that cannot be used", async () => {
    const whole = configuration("0".repeat(64))
    // The pinned key of the absent provider would delay every start.
    const file = { ...whole, signers: whole.signers.slice(0, 2) }
    const wrong: ReadonlyArray<Partial<File> | Record<string, unknown>> = [
      { signers: [{ ...file.signers[0], privateKey: { env: "HALF" } }] },
      { signers: [{ ...file.signers[0], privateKey: { env: "DEPLOYER" } }] },
      { signers: [{ ...file.signers[0], address: `0x${"34".repeat(20)}` }] },
      { systemKeys: { deployer: { env: "HALF" }, serviceEoa: { provider: "kms", key: "alias/none" } } },
      { systemKeys: { deployer: { env: "EOA" }, serviceEoa: { env: "EOA" } } },
      { providers: [kms, { ...files, keys: [{ ...files.keys[0], password: { env: "WRONG" } }] }] },
      {
        profile: "production",
        keyPepper: secrets.pepper,
        systemKeys: { deployer: secrets["key of the deployer"] }
      },
      { providers: [kms, files, { ...kms, name: "x", pin: secrets["access key of a KMS"] }] },
      { networks: [{ ...file.networks[0], rpc: { url: secrets["path of the operator's RPC"] } }] }
    ]
    for (const change of wrong) {
      const refused = await run(
        Effect.flip(
          Effect.scoped(
            Effect.flatMap(
              Effect.fromResult(
                read({ ...file, ...change, database: { path: join(folder, "other.sqlite") } })
              ),
              Service.start
            )
          )
        )
      )
      leaks.keep("refusal to start", refused)
      leaks.keep("refusal to start", refused.message)
    }
  })

  it("shows no secret anywhere: not in answers, logs, spans or failed starts", () => {
    const counts = leaks.counts()
    expect(counts.log).toBeGreaterThan(10)
    expect(counts.trace).toBeGreaterThan(10)
    expect(counts["refusal to start"]).toBe(18)
    expect(leaks.found({ ...secrets, "API key": apiKey })).toEqual([])
  })
})
