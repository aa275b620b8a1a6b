import { Interface, toQuantity } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import { type Estimate, elementAt, type Log, type TransactionResult } from "../../support/http/DevService.js"
import { documented } from "../../support/http/Examples.js"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()
let wallet: string
beforeAll(async () => {
  wallet = String((await service.create("main"))[0])
})

const operation = (funcSignature: string, funcParams: ReadonlyArray<string>) => ({
  operations: [{ wallet, walletCustody: 1, to: service.info.reverter, funcSignature, funcParams }],
  settings: service.info.settings
})

const input = (name: string, type: string, indexed: boolean) => ({ name, type, indexed, internalType: type })
const succeeded = {
  type: "event",
  name: "Succeeded",
  inputs: [
    input("caller", "address", true),
    input("value", "uint256", false),
    input("note", "string", false)
  ],
  anonymous: false
}
const refusedError = {
  type: "error",
  name: "Refused",
  inputs: [
    { name: "who", type: "address", internalType: "address" },
    { name: "needed", type: "uint256", internalType: "uint256" },
    { name: "had", type: "uint256", internalType: "uint256" }
  ]
}
const eventDef = "event Succeeded(address indexed caller, uint256 value, string note)"

const ofReverter = (logs: ReadonlyArray<Log>): Log => {
  const log = logs.find(({ address }) => address === service.info.reverter)
  if (log === undefined) throw new Error("the contract logged nothing")
  return log
}

const receiptLog = async (txHash: string, key?: string): Promise<Log> => {
  const { body } = await service.ask<{ receipts: ReadonlyArray<{ logs: ReadonlyArray<Log> }> }>(
    "/receipt",
    { txHashes: [txHash], rpc: service.info.rpc },
    key === undefined ? {} : { key }
  )
  return ofReverter(body.receipts[0]?.logs ?? [])
}

describe("a registered event", () => {
  it("decodes logs of /execute and /receipt and can be filtered, for only its own account", async () => {
    const stranger = service.info.apiKeys.pro
    const call = operation("succeed(string)", ["hello"])
    const fromBlock = toQuantity((await service.provider.getBlockNumber()) + 1)
    const query = { eventName: "Succeeded", rpc: service.info.rpc, fromBlock }
    const before = await service.ok<TransactionResult>("/execute", call)
    expect(ofReverter(before.logs)).toMatchObject({ eventName: null, eventDef: null, args: null })
    expect((await service.refused(400, "/filterEvent", query)).error).toBe("event not registered")

    const registration = { eventABI: succeeded }
    expect(await documented(service, "/addEvent", registration)).toEqual({ status: 200, eventDef })
    expect(await service.ok("/addEvent", registration)).toEqual({ status: 200, eventDef })

    const after = await service.ok<TransactionResult>("/execute", call)
    const decoded = { eventName: "Succeeded", eventDef, args: { caller: wallet, value: "0", note: "hello" } }
    const log = ofReverter(after.logs)
    expect(log).toMatchObject(decoded)
    const truth = new Interface([eventDef]).parseLog({ topics: [...log.topics], data: log.data })
    expect([truth?.args.caller, truth?.args.note]).toEqual([wallet, "hello"])
    expect(await receiptLog(before.txHash)).toMatchObject(decoded)
    expect(await service.ok("/filterEvent", query)).toEqual({
      requestStatus: 200,
      txHashes: [before.txHash, after.txHash]
    })

    expect(await receiptLog(before.txHash, stranger)).toMatchObject({ eventName: null, args: null })
    expect((await service.refused(400, "/filterEvent", query, { key: stranger })).code).toBe(
      "event_not_registered"
    )
  })
})

describe("a registered error", () => {
  it("decodes reverts of /execute and /estimateGas, for only its own account", async () => {
    const call = operation("failCustom(uint256,uint256)", ["5", "3"])
    const reason = async () => {
      const { returnData } = await service.refused(422, "/execute", call)
      return elementAt(returnData, 0).error
    }
    const raw = new Interface(["error Refused(address,uint256,uint256)"])
    const [fragment] = raw.fragments
    const selector = raw.getError("Refused")?.selector
    expect([fragment?.type, await reason()]).toEqual(["error", expect.stringContaining(String(selector))])
    expect(await documented(service, "/addError", { errorABI: refusedError })).toEqual({
      status: 200,
      errorDef: "error Refused(address who, uint256 needed, uint256 had)"
    })
    const decoded = `Refused(who: ${wallet}, needed: 5, had: 3)`
    expect(await reason()).toBe(decoded)
    expect((await service.ok<Estimate>("/estimateGas", call)).error).toContain(decoded)
    const stranger = await service.ask<Estimate>("/estimateGas", call, {
      key: service.info.apiKeys.pro
    })
    expect(stranger.body.error ?? "").not.toContain("Refused")
  })
})
