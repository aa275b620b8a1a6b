import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import {
  Contract,
  getBytes,
  type JsonRpcProvider,
  Network,
  JsonRpcProvider as Provider,
  Wallet
} from "ethers"
import { artifact } from "../../src/hosts/cli/deploy/Artifacts.js"
import { devKeys } from "../../src/hosts/cli/dev/DevKeys.js"
import * as DevStack from "../../src/hosts/cli/dev/DevStack.js"
import { startNode } from "../../tools/PreparedChain.js"

// The promises of the service, kept over HTTP on a real chain: every answer is compared with what the chain says.

interface Answer {
  readonly status: number
  /** Whatever the service says; the assertions are the check. */
  readonly body: ReturnType<typeof JSON.parse>
}

let info: DevStack.DevInfo
let provider: JsonRpcProvider
let token: Contract
const scope = Effect.runSync(Scope.make())

beforeAll(async () => {
  info = await Effect.runPromise(
    DevStack.start({ port: 0, rpcPort: 0, chainId: 31_337, blockTime: null, startNode }).pipe(
      Scope.provide(scope),
      Effect.provide(Logger.layer([]))
    )
  )
  provider = new Provider(info.rpc, new Network("development", info.chainId), {
    staticNetwork: true,
    cacheTimeout: -1,
    pollingInterval: 20
  })
  token = new Contract(info.token, artifact("TestToken").abi, provider)
})

afterAll(async () => {
  provider.destroy()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const post = async (path: string, body: unknown, key = info.apiKeys.enterprise): Promise<Answer> => {
  const answer = await fetch(`${info.baseUrl}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify(body)
  })
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

const fund = (address: string, wei = 10n ** 18n) =>
  provider.send("anvil_setBalance", [address, `0x${wei.toString(16)}`])
const accountOf = (salt: string) => ({ salt, walletCustody: 1 })
const settings = (version: "v0.6" | "v0.7" | "v0.8" = "v0.7") => ({
  ...info.settings,
  entryPoint: info.entryPoints[version]
})
const predict = async (...salts: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const { body } = await post("/predict", { accounts: salts.map(accountOf), settings: info.settings })
  return body.map(({ wallet }: { readonly wallet: string }) => wallet)
}
const create = async (salts: ReadonlyArray<string>, version?: "v0.6" | "v0.7" | "v0.8") => {
  const wallets = await predict(...salts)
  for (const wallet of wallets) await fund(wallet)
  const { body, status } = await post("/create", {
    accounts: salts.map(accountOf),
    settings: settings(version)
  })
  expect(status, JSON.stringify(body)).toBe(200)
  expect(body.status).toBe(1)
  return wallets
}
const operation = (
  salt: string,
  to: string,
  funcSignature: string,
  ...funcParams: ReadonlyArray<string>
) => ({
  ...accountOf(salt),
  to,
  funcSignature,
  funcParams
})
const balanceOf = (holder: string): Promise<bigint> => token.getFunction("balanceOf")(holder)
const recipient = () => Wallet.createRandom().address

describe("over HTTP, on a real chain", () => {
  it("256 accounts are predicted in one request, each where it is deployed", async () => {
    const salts = Array.from({ length: 256 }, (_, n) => `many-${n}`)
    const wallets = await predict(...salts)
    expect(new Set(wallets).size).toBe(256)
    expect(await create(["many-0", "many-255"])).toEqual([wallets[0], wallets[255]])
    for (const wallet of [wallets[0], wallets[255]])
      expect((await provider.getCode(wallet ?? "")).length).toBeGreaterThan(2)
  })

  for (const version of ["v0.6", "v0.7", "v0.8"] as const)
    it(`wallets are created and used through EntryPoint ${version} with the same settings`, async () => {
      const salt = `on-${version}`
      const [wallet = ""] = await create([salt], version)
      const to = recipient()
      const { body } = await post("/execute", {
        operations: [
          operation(salt, info.token, "mint(address,uint256)", wallet, "100"),
          operation(salt, info.token, "transfer(address,uint256)", to, "40")
        ],
        settings: settings(version)
      })
      expect(body.status, JSON.stringify(body)).toBe(1)
      expect([await balanceOf(wallet), await balanceOf(to)]).toEqual([60n, 40n])
      const receipt = await provider.getTransactionReceipt(body.txHash)
      expect(receipt?.to).toBe(info.entryPoints[version])
    })

  it("a wallet that lacks funds is named with what it lacks, and nothing is sent", async () => {
    const [wallet = ""] = await predict("poor")
    const before = await provider.getTransactionCount(devKeys.signer.address)
    const { body, status } = await post("/create", { accounts: [accountOf("poor")], settings: info.settings })
    expect([status, body.error]).toEqual([422, "insufficient funds"])
    expect(body.details[0]).toMatchObject({ path: "accounts[0]", wallet, available: "0" })
    expect(await provider.getTransactionCount(devKeys.signer.address)).toBe(before)
    // The block of the funding may raise the price by an eighth.
    await fund(wallet, (BigInt(body.details[0].missing) * 9n) / 8n + 1n)
    const again = await post("/create", { accounts: [accountOf("poor")], settings: info.settings })
    expect(again.body.status, JSON.stringify(again.body)).toBe(1)
  })

  it("estimated ops that their caller signs are executed unchanged, once", async () => {
    await create(["own"])
    const to = recipient()
    const estimate = await post("/estimateGas", {
      operations: [operation("own", info.token, "mint(address,uint256)", to, "9")],
      settings: settings()
    })
    expect(estimate.body.status, JSON.stringify(estimate.body)).toBe(1)
    const [op] = estimate.body.userOps
    // As a wallet app signs it.
    const signature = await devKeys.signer.signMessage(getBytes(op.signingHash))
    const send = (signature: string) =>
      post("/executeEncoded", {
        operations: [
          { encodedUserOp: op.encodedUserOp, userOpHash: op.userOpHash, walletCustody: 1, signature }
        ],
        settings: settings()
      })
    const stranger = await send(Wallet.createRandom().signingKey.sign(op.signingHash).serialized)
    expect([stranger.status, await balanceOf(to)]).toEqual([422, 0n])
    const sent = await send(signature)
    expect(sent.body.status, JSON.stringify(sent.body)).toBe(1)
    expect(await balanceOf(to)).toBe(9n)
    const again = await send(signature)
    expect(again.body.txHash ?? again.body.error).toBe(sent.body.txHash)
    expect(await balanceOf(to)).toBe(9n)
  })

  it("the accounts of all tiers may use the signer, and each has the limit of its tier", async () => {
    for (const [tier, limit] of [
      ["free", "60"],
      ["pro", "300"],
      ["enterprise", "1000"]
    ] as const) {
      const answer = await fetch(`${info.baseUrl}/getSigner`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": info.apiKeys[tier] },
        body: JSON.stringify({ signer: info.settings.signer })
      })
      expect([answer.status, answer.headers.get("ratelimit-limit")]).toEqual([200, limit])
      expect(JSON.parse(await answer.text()).address).toBe(devKeys.signer.address)
    }
  })
})
