import { AbiCoder, concat, getCreate2Address, id, keccak256 } from "ethers"
import { describe, expect, it } from "vitest"
import {
  anvilKey,
  type CreateResult,
  elementAt,
  type Prediction,
  type TransactionResult
} from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

interface Checked {
  readonly exists: boolean
  readonly wallet: string
  readonly salt: string
  readonly error: string | null
}

const service = perFile()

const coder = AbiCoder.defaultAbiCoder()

/** The published formula, written down again; null: of a legacy wallet. */
const predicted = (salt: string, custody: number | null): string => {
  const { beaconAdminAddress, beaconAdminCreationCode, factory } = service.info.settings
  const create2Salt =
    custody === null ? id(salt) : keccak256(coder.encode(["bytes32", "uint256"], [id(salt), custody]))
  const initCode = concat([
    beaconAdminCreationCode,
    coder.encode(["address", "bytes"], [beaconAdminAddress, "0x"])
  ])
  return getCreate2Address(factory, create2Salt, keccak256(initCode))
}

const predict = (accounts: ReadonlyArray<unknown>) =>
  service.ok<ReadonlyArray<Prediction>>("/predict", { accounts, settings: service.info.settings })

const account = (salt: string, rest: object = {}) => ({ salt, walletCustody: 1, ...rest })

const create = (accounts: ReadonlyArray<unknown>, settings: object = {}) =>
  service.ok<CreateResult>("/create", { accounts, settings: { ...service.info.settings, ...settings } })

const createRefused = (status: number, accounts: ReadonlyArray<unknown>, settings: object = {}) =>
  service.refused(status, "/create", { accounts, settings: { ...service.info.settings, ...settings } })

const check = (accounts: ReadonlyArray<unknown>, settings: object = { rpc: service.info.rpc }) =>
  service.ok<ReadonlyArray<Checked>>("/check", { accounts, settings })

const transactionsSent = async () => [
  await service.provider.getTransactionCount(service.signer.address),
  await service.provider.getBlockNumber()
]

describe("a prediction", () => {
  it("is the CREATE2 address of every salt and custody, 256 of them in one request", async () => {
    const accounts = Array.from({ length: 256 }, (_, n) => ({
      salt: `customer ${n} \u00e9\u4e2d\u{1f511}`,
      walletCustody: (n % 5) + 1
    }))
    const answers = await predict(accounts)
    expect(answers).toEqual(
      accounts.map(({ salt, walletCustody }) => ({
        salt,
        wallet: predicted(salt, walletCustody),
        error: null
      }))
    )
    expect(new Set(answers.map(({ wallet }) => wallet)).size).toBe(256)
  })

  it("queries no node: it is answered while the named one does not exist", async () => {
    const settings = { ...service.info.settings, rpc: "http://127.0.0.1:1/" }
    const [answer] = await service.ok<ReadonlyArray<Prediction>>("/predict", {
      accounts: [account("offline")],
      settings
    })
    expect(answer?.wallet).toBe(predicted("offline", 1))
  })

  it.each([
    ["is not hex", "0xzz"],
    ["is empty", ""]
  ])("fails with 422 when the creation code %s", async (_, beaconAdminCreationCode) => {
    const { code, error } = await service.refused(422, "/predict", {
      accounts: [account("a")],
      settings: { ...service.info.settings, beaconAdminCreationCode }
    })
    expect({ code, error }).toEqual({
      code: "internal_application_error",
      error: "internal application error"
    })
  })
})

const badSalts: ReadonlyArray<readonly [string, string]> = [
  ["of 257 bytes", "s".repeat(257)],
  ["with a control character", "a\u0000b"],
  ["that is not NFC", "e\u0301"]
]

describe("a salt", () => {
  it("is malformed in predict when empty, and absent where a wallet could stand instead", async () => {
    const { settings } = service.info
    const accounts = [account("")]
    const predicting = await service.refused(400, "/predict", { accounts, settings })
    expect(predicting.error).toBe("invalid salt format")
    const creating = await service.refused(400, "/create", { accounts, settings })
    expect(creating.error).toBe("salt is required")
    expect((await check(accounts))[0]?.error).toContain("required")
  })

  it.each(badSalts)("%s is refused by predict and create", async (_, salt) => {
    for (const path of ["/predict", "/create"]) {
      const { code, details, error } = await service.refused(400, path, {
        accounts: [account("good"), account(salt)],
        settings: service.info.settings
      })
      expect({ code, error }).toEqual({ code: "invalid_salt_format", error: "invalid salt format" })
      expect(details.map(({ path }) => path)).toEqual(["accounts[1].salt"])
    }
  })
})

describe.each(["v0.6", "v0.7", "v0.8"] as const)("creation through EntryPoint %s", (version) => {
  const settings = () => ({ entryPoint: service.info.entryPoints[version] })
  const salts = ["one", "two", "three"].map((name) => `${name} ${version}`)

  it("deploys several wallets in one transaction at their predicted addresses: status 1", async () => {
    const wallets = await service.predict(...salts)
    for (const wallet of wallets) await service.fund(wallet)
    const result = await create(
      salts.map((salt) => account(salt)),
      settings()
    )
    expect(Object.keys(result).sort().join()).toBe(
      "cumulativeGasUsed,effectiveGasPrice,gasUsed,logs,returnData,status,txHash,txHashes"
    )
    expect(result.status).toBe(1)
    expect(result.returnData).toEqual(salts.map((salt, n) => ({ [n]: { salt, wallet: wallets[n] } })))
    expect(result.txHashes).toEqual([result.txHash])
    for (const wallet of wallets) expect(await service.provider.getCode(wallet)).not.toBe("0x")
    const receipt = await service.provider.getTransactionReceipt(result.txHash)
    expect({ to: receipt?.to, from: receipt?.from, status: receipt?.status }).toEqual({
      to: service.info.entryPoints[version],
      from: service.signer.address,
      status: 1
    })
    expect({
      gasUsed: BigInt(result.gasUsed),
      cumulativeGasUsed: BigInt(result.cumulativeGasUsed),
      effectiveGasPrice: result.effectiveGasPrice
    }).toEqual({
      gasUsed: receipt?.gasUsed,
      cumulativeGasUsed: receipt?.cumulativeGasUsed,
      effectiveGasPrice: String(receipt?.gasPrice)
    })
    expect(result.logs.map(({ data, topics }) => ({ data, topics }))).toEqual(
      receipt?.logs.map(({ data, topics }) => ({ data, topics: [...topics] }))
    )
    const deployed = result.logs.filter(({ eventName }) => eventName === "AccountDeployed")
    expect(deployed.map(({ args }) => args.sender)).toEqual(wallets)
  })
})

describe("creation", () => {
  const salts = ["one", "two", "three"].map((name) => `${name} v0.7`)
  it("sends no transaction when all wallets exist: status 2", async () => {
    const before = await transactionsSent()
    const result = await create(salts.map((salt) => account(salt)))
    const wallets = await service.predict(...salts)
    expect(result).toEqual({
      status: 2,
      txHash: "",
      cumulativeGasUsed: 0,
      gasUsed: 0,
      effectiveGasPrice: "0",
      returnData: salts.map((salt, n) => ({ [n]: { salt, wallet: wallets[n] } })),
      logs: [],
      txHashes: []
    })
    expect(await transactionsSent()).toEqual(before)
  })

  it("deploys the funded one of an existing, a funded and an unfunded wallet: status 3", async () => {
    const [funded, unfunded] = ["funded", "unfunded"]
    const [wallet = ""] = await service.predict(funded)
    await service.fund(wallet)
    const result = await create([account(String(salts[0])), account(unfunded), account(funded)])
    expect(result.status).toBe(3)
    expect(elementAt(result.returnData, 1).error).toContain("insufficient funds")
    expect(elementAt(result.returnData, 2)).toEqual({ salt: funded, wallet })
    expect(await service.provider.getCode(wallet)).not.toBe("0x")
  })

  it("names each unfunded wallet with its shortfall, and sends no transaction", async () => {
    const poor = ["poor", "poorer"]
    const wallets = await service.predict(...poor)
    await service.fund(String(wallets[1]), 1_000n)
    const before = await transactionsSent()
    const { code, details, error } = await createRefused(
      422,
      poor.map((salt) => account(salt))
    )
    expect({ code, error }).toEqual({ code: "insufficient_funds", error: "insufficient funds" })
    expect(details.map(({ path }) => path)).toEqual(["accounts[0]", "accounts[1]"])
    for (const [n, wallet] of wallets.entries()) expect(JSON.stringify(details[n])).toContain(wallet)
    expect(await transactionsSent()).toEqual(before)
    for (const [n, wallet] of wallets.entries()) {
      const missing = BigInt(String(details[n]?.missing))
      // A later deployment has another deadline: its signature may have fewer zero bytes, which are cheaper.
      await service.fund(wallet, missing + missing / 1_000n)
    }
    expect((await create(poor.map((salt) => account(salt)))).status).toBe(1)
  })
  it("is refused as a whole when a wallet exists with another owner, and sends no transaction", async () => {
    const [wallet = "", fresh = ""] = await service.predict("rotated", "beside")
    await service.create("rotated")
    await service.fund(fresh)
    const rotation = await service.ok<TransactionResult>("/execute", {
      operations: [
        {
          wallet,
          walletCustody: 1,
          to: wallet,
          funcSignature: "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))",
          funcParams: [JSON.stringify(["1", "1", [anvilKey(9).address], []])]
        }
      ],
      settings: service.info.settings
    })
    expect(rotation.status).toBe(1)
    const before = await transactionsSent()
    const { code, details, error } = await createRefused(422, [account("beside"), account("rotated")])
    expect({ code, error }).toEqual({ code: "account_exists", error: "account already exists" })
    expect(details.map(({ path }) => path)).toEqual(["accounts[1]"])
    expect(await transactionsSent()).toEqual(before)
  })

  it("a foreign factory is reported by /execute, /estimateGas and /passkeyHash as by /create", async () => {
    const settings = { ...service.info.settings, factory: "0x000000000000000000000000000000000000dEaD" }
    const operations = [
      { salt: "foreign", walletCustody: 1, to: service.info.token, funcSignature: "totalSupply()" }
    ]
    const { requestId: _, ...told } = await service.refused(400, "/create", {
      accounts: [account("foreign")],
      settings
    })
    for (const endpoint of ["/execute", "/estimateGas", "/passkeyHash"]) {
      const { signer, ...others } = settings
      const { requestId: _, ...same } = await service.refused(400, endpoint, {
        operations,
        settings: endpoint === "/passkeyHash" ? others : settings
      })
      expect(same).toEqual(told)
    }
  })

  it("with a validator that the implementation does not report is refused", async () => {
    const { code, details } = await createRefused(400, [account("validated")], {
      validator: "0x000000000000000000000000000000000000dEaD"
    })
    expect(code).toBe("validator_mismatch")
    expect(details.map(({ path }) => path)).toEqual(["settings.validator"])
  })

  it("without the optional settings uses the operator's", async () => {
    const { entryPoint, rpc, signer } = service.info.settings
    const [wallet = ""] = await service.predict("plain")
    await service.fund(wallet)
    const result = await service.ok<CreateResult>("/create", {
      accounts: [account("plain")],
      settings: { rpc, entryPoint, signer }
    })
    expect(elementAt(result.returnData, 0)).toEqual({ salt: "plain", wallet })
  })

  it("deploys a wallet once for ten concurrent requests, and each answer says so", async () => {
    const [wallet = ""] = await service.predict("raced")
    await service.fund(wallet)
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        service.ask<CreateResult>("/create", {
          accounts: [account("raced")],
          settings: service.info.settings
        })
      )
    )
    const outcomes = answers.map(({ body, status }) => (status === 200 ? body.status : status))
    expect(outcomes.filter((outcome) => outcome === 1)).toHaveLength(1)
    expect(
      outcomes.filter((outcome) => outcome !== 1 && outcome !== 2),
      JSON.stringify(answers.map(({ text }) => text.slice(0, 300)))
    ).toEqual([])
  })
})

describe("a check", () => {
  it("finds deployed wallets by salt and by wallet, and reports absent ones", async () => {
    const [wallet = ""] = await service.create("checked")
    const [unborn = ""] = await service.predict("unborn")
    const answers = await check([
      account("checked"),
      { wallet },
      { wallet: wallet.toLowerCase() },
      account("unborn"),
      { wallet: unborn },
      { ...account("checked"), wallet },
      { salt: "", wallet },
      { wallet: "", salt: "checked", walletCustody: 1 }
    ])
    expect(answers.map(({ error, exists }) => ({ error, exists }))).toEqual([
      { error: null, exists: true },
      { error: null, exists: true },
      { error: null, exists: true },
      { error: null, exists: false },
      { error: null, exists: false },
      { error: null, exists: true },
      { error: null, exists: true },
      { error: null, exists: true }
    ])
    expect(answers.map((answer) => answer.wallet)).toEqual([
      wallet,
      wallet,
      wallet,
      unborn,
      unborn,
      wallet,
      wallet,
      wallet
    ])
    expect(answers.map(({ salt }) => salt)).toEqual([
      "checked",
      "",
      "",
      "unborn",
      "",
      "checked",
      "",
      "checked"
    ])
  })

  it("reports an invalid element in that element", async () => {
    const [wallet = "", other = ""] = await service.predict("checked", "unborn")
    const answers = await check([
      { wallet: service.info.token },
      { salt: "checked" },
      { salt: "checked", walletCustody: 9 },
      { wallet: "0x12" },
      { wallet: wallet.toLowerCase().replace(/[a-f]/, (digit) => digit.toUpperCase()) },
      { ...account("checked"), wallet: other },
      {}
    ])
    for (const answer of answers) {
      expect(answer.exists).toBe(false)
      expect(typeof answer.error, JSON.stringify(answers)).toBe("string")
    }
    expect(answers[2]?.error).toBe("invalid wallet custody type")
  })

  it("takes every wallet of the salt, and no other, for a salt and a wallet without a custody", async () => {
    const [wallet = ""] = await service.predict("checked")
    const wallets = [1, 2, 3, 4, 5, null].map((custody) => predicted("checked", custody))
    expect(wallets[0]).toBe(wallet)
    const answers = await check([
      ...wallets.map((one) => ({ salt: "checked", wallet: one })),
      { salt: "another", wallet }
    ])
    const none = "the salt names no such wallet, whatever its custody is"
    expect(answers.map(({ error }) => error)).toEqual([null, null, null, null, null, null, none])
    expect(answers.map(({ exists }) => exists)).toEqual([true, ...Array(6).fill(false)])
  })
})
