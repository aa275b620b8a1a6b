import { id, SigningKey, ZeroAddress, zeroPadValue } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import { anvilKey, type Log, type TransactionResult } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

interface Receipts {
  readonly requestStatus: number
  readonly receipts: ReadonlyArray<{
    readonly status: number
    readonly txHash: string
    readonly gasUsed: number
    readonly cumulativeGasUsed: number
    readonly effectiveGasPrice: string
    readonly logs: ReadonlyArray<Log>
  }>
  readonly pending: ReadonlyArray<string>
  readonly unknown: ReadonlyArray<string>
}

const service = perFile()
let wallet: string
let minted: TransactionResult
beforeAll(async () => {
  wallet = String((await service.create("main"))[0])
  minted = await service.ok("/execute", {
    operations: [
      {
        wallet,
        walletCustody: 1,
        to: service.info.token,
        funcSignature: "mint(address,uint256)",
        funcParams: [wallet, "5"]
      }
    ],
    settings: service.info.settings
  })
})

const receipts = (txHashes: ReadonlyArray<string>, rest: object = {}) =>
  service.ok<Receipts>("/receipt", { txHashes, rpc: service.info.rpc, ...rest })

describe("receipts", () => {
  it("return the chain's data, with decoded logs", async () => {
    const answer = await receipts([minted.txHash])
    expect(Object.keys(answer).sort()).toEqual(["pending", "receipts", "requestStatus", "unknown"])
    expect({ requestStatus: answer.requestStatus, pending: answer.pending, unknown: answer.unknown }).toEqual(
      {
        requestStatus: 200,
        pending: [],
        unknown: []
      }
    )
    const [receipt] = answer.receipts
    const truth = await service.provider.getTransactionReceipt(minted.txHash)
    expect({
      status: receipt?.status,
      txHash: receipt?.txHash,
      gasUsed: receipt?.gasUsed,
      cumulativeGasUsed: receipt?.cumulativeGasUsed,
      effectiveGasPrice: receipt?.effectiveGasPrice
    }).toEqual({
      status: truth?.status,
      txHash: truth?.hash,
      gasUsed: Number(truth?.gasUsed),
      cumulativeGasUsed: Number(truth?.cumulativeGasUsed),
      effectiveGasPrice: String(truth?.gasPrice)
    })
    expect(receipt?.logs).toEqual(minted.logs)
    const transfer = receipt?.logs.find(({ eventName }) => eventName === "Transfer")
    expect(transfer).toEqual({
      address: service.info.token,
      logIndex: transfer?.logIndex,
      eventName: "Transfer",
      eventDef: "event Transfer(address indexed from, address indexed to, uint256 value)",
      args: { from: ZeroAddress, to: wallet, value: "5" },
      topics: [
        id("Transfer(address,address,uint256)"),
        zeroPadValue(ZeroAddress, 32),
        zeroPadValue(wallet, 32).toLowerCase()
      ],
      data: zeroPadValue("0x05", 32)
    })
  })
})

describe("a signer", () => {
  it("is returned by address, uncompressed public key and type", async () => {
    const { signer } = service.info.settings
    expect(await service.ok("/getSigner", { signer })).toEqual({
      address: service.signer.address,
      publicKey: SigningKey.computePublicKey(service.signer.privateKey, false).slice(2),
      type: "PRIVATE_KEY"
    })
  })

  it.each([
    [{ clientId: "nobody", versionId: "1" }, "invalid client ID: client ID incorrect", "clientId"],
    [{ clientId: "deployer", versionId: "1" }, "invalid client ID: client ID incorrect", "clientId"]
  ])("%j is refused: %s", async (signer, error, field) => {
    const asked = await service.refused(401, "/getSigner", { signer })
    expect(asked.error).toBe(error)
    expect(asked.details[0]?.path).toBe(`signer.${field}`)
    expect(asked.details[0]?.message).toBe(
      `${error}; call /getSigner with the signer only. The operator lists this account's signers with castellan signers list`
    )
    for (const [path, body] of [
      ["/create", { accounts: [{ salt: "x", walletCustody: 1 }] }],
      ["/execute", { operations: [{ wallet, walletCustody: 1, to: wallet, funcSignature: "receive()" }] }]
    ] as const) {
      const refused = await service.refused(401, path, {
        ...body,
        settings: { ...service.info.settings, signer }
      })
      expect(refused.error).toBe(error)
      expect(refused.details[0]?.path).toBe(`settings.signer.${field}`)
    }
  })
})

describe("the service's EOA", () => {
  it("is returned to GET and POST, with and without a body", async () => {
    const address = anvilKey(2).address
    const { chainId } = service.info
    for (const [method, body] of [
      ["GET", undefined],
      ["POST", {}],
      ["POST", { chainId }],
      ["POST", { chainId: String(chainId) }],
      ["POST", { chainId: `0x${chainId.toString(16)}` }],
      ["POST", undefined]
    ] as const) {
      const answer = await service.ask("/getbundleraddress", body, { method })
      expect({ method, body: answer.body, status: answer.status }).toEqual({
        method,
        body: { address },
        status: 200
      })
    }
  })

  it.each([null, "", "031337", 1.5, -1])("is not returned for chain %j", async (chainId) => {
    const { code, details } = await service.refused(400, "/getbundleraddress", { chainId })
    expect({ code, path: details[0]?.path }).toEqual({ code: "invalid_request", path: "chainId" })
  })

  it.each([
    [5, "5"],
    ["0x5", "5"],
    ["99999999999999999999999", "99999999999999999999999"]
  ])("is not returned for chain %j, which the operator does not serve", async (chainId, named) => {
    const { code, error } = await service.refused(400, "/getbundleraddress", { chainId })
    expect({ code, error }).toEqual({ code: "unsupported_chain", error: `unsupported chain id ${named}` })
  })
})
