import { Contract, concat, Interface, type TransactionRequest, ZeroAddress } from "ethers"
import { describe, expect, it } from "vitest"
import * as CountingProxy from "../../../tools/CountingProxy.js"
import { anvilKey, type Log } from "../../support/http/DevService.js"
import { documented } from "../../support/http/Examples.js"
import { startProxy } from "../../support/http/Proxy.js"
import { putReadCodes, type ReadCode } from "../../support/http/ReadCodes.js"
import { aloneInFile } from "../../support/http/SharedService.js"
import { refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { use } from "../../support/Use.js"

interface Receipts {
  readonly requestStatus: number
  readonly receipts: ReadonlyArray<{
    readonly status: number
    readonly txHash: string
    readonly logs: ReadonlyArray<Log>
    readonly error: string | null
    readonly missing?: ReadonlyArray<string>
  }>
  readonly pending: ReadonlyArray<string>
  readonly unknown: ReadonlyArray<string>
  readonly incomplete?: ReadonlyArray<object>
}

const service = aloneInFile()
const proxy = use(() => startProxy(service.info.rpc))
const node = use(() => startFaultyNode(service.info.rpc))
let at: Readonly<Record<ReadCode, string>>

const ask = (txHashes: ReadonlyArray<string>, rest: object = {}) =>
  service.ok<Receipts>("/receipt", { txHashes, rpc: proxy.url, ...rest })

const token = new Interface([
  "function mint(address,uint256)",
  "function transfer(address,uint256)",
  "function approve(address,uint256)"
])
const reverter = new Interface([
  "function failWithReason(string)",
  "function failCustom(uint256,uint256)",
  "function failWithoutReason()",
  "function failOutOfGas()"
])

/** Sends with given fees, for a fixed hash, and waits until it is mined. */
const send = async (request: TransactionRequest, key = 7): Promise<string> => {
  const sent = await anvilKey(key)
    .connect(service.provider)
    .sendTransaction({ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n, gasLimit: 200_000n, ...request })
  await sent.wait().catch(() => null)
  return sent.hash
}

const call = (
  to: string,
  abi: Interface,
  name: string,
  ...args: ReadonlyArray<unknown>
): TransactionRequest => ({
  to,
  data: abi.encodeFunctionData(name, args)
})

describe("a request and its answer", () => {
  it("are quoted unchanged in the reference", async () => {
    const { rpc, token: address } = service.info
    const recipient = anvilKey(9).address
    const baseFee = () => service.provider.send("anvil_setNextBlockBaseFeePerGas", ["0x3b9aca00"])
    await baseFee()
    const minted = await send(call(address, token, "mint", recipient, 5))
    await baseFee()
    const failed = await send(call(address, token, "transfer", recipient, 7))
    await documented(service, "/receipt", { txHashes: [minted, failed, `0x${"ab".repeat(32)}`], rpc })
    at = await putReadCodes(service.provider)
  })
})

describe("a failed transaction", () => {
  it("reports its reason: a message, a custom error of useABI, gas, or none", async () => {
    const { reverter: to } = service.info
    const hashes = [
      await send(call(to, reverter, "failWithReason", "not today")),
      await send(call(to, reverter, "failCustom", 7, 5)),
      await send(call(to, reverter, "failWithoutReason")),
      await send(call(to, reverter, "failOutOfGas")),
      await send({ to, data: "0x", value: 1n }),
      await send({ data: concat(["0x600436036004600039", "0x600436036000fd"]) })
    ]
    const { receipts } = await ask(hashes, {
      useABI: ["error Refused(address who, uint256 needed, uint256 had)"]
    })
    expect(receipts.map(({ status }) => status)).toEqual(hashes.map(() => 0))
    const spent = "used all of its gas: out of gas, or an invalid instruction"
    expect(receipts.slice(0, 5).map(({ error }) => error)).toEqual([
      "not today",
      `Refused(who: ${anvilKey(7).address}, needed: 7, had: 5)`,
      "reverted without a reason",
      spent,
      "reverted without a reason"
    ])
    // Contract creation that reverts or runs out of memory gas: reported in either case.
    expect(receipts[5]?.error).toEqual(expect.any(String))
  })

  it("reports the EntryPoint's refusal", async () => {
    const bytes32 = `0x${"00".repeat(32)}`
    const entryPoint = new Contract(service.info.entryPoints["v0.7"], [
      "function handleOps((address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)[],address)"
    ])
    const gas = `0x${"186a0".padStart(32, "0").repeat(2)}`
    const factory = concat([anvilKey(8).address, "0x12345678"])
    const op = [anvilKey(8).address, 0, factory, "0x", gas, 0, bytes32, "0x", "0x"]
    const { data, to } = await entryPoint
      .getFunction("handleOps")
      .populateTransaction([op], anvilKey(7).address)
    const hash = await send({ data, to, gasLimit: 1_000_000n })
    const [receipt] = (await ask([hash])).receipts
    expect(receipt?.status).toBe(0)
    expect(receipt?.error).toMatch(/^AA13 initCode failed or OOG/)
  })

  it("reports no false reason when it fails only after another one of its block", async () => {
    const { token: address } = service.info
    const recipient = anvilKey(9).address
    await send(call(address, token, "mint", anvilKey(6).address, 10), 6)
    const balances = new Contract(
      address,
      ["function balanceOf(address) view returns (uint256)"],
      service.provider
    )
    expect(await balances.getFunction("balanceOf")(anvilKey(6).address)).toBe(10n)
    await service.provider.send("evm_setAutomine", [false])
    const fee = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n, gasLimit: 200_000n }
    const sender = anvilKey(6).connect(service.provider)
    const nonce = await sender.getNonce()
    const transfer = call(address, token, "transfer", recipient, 10)
    const first = await sender.sendTransaction({ ...transfer, ...fee, nonce })
    const second = await sender.sendTransaction({ ...transfer, ...fee, nonce: nonce + 1 })
    await service.provider.send("evm_mine", [])
    await service.provider.send("evm_setAutomine", [true])
    const { receipts } = await ask([first.hash, second.hash])
    expect(receipts.map(({ error, status }) => ({ status, error }))).toEqual([
      { status: 1, error: null },
      { status: 0, error: null }
    ])
  })

  it("is reported without a reason by a node without history", async () => {
    const hash = await send(call(service.info.reverter, reverter, "failWithReason", "forgotten"))
    node.behave((question, askNode) =>
      question.method === "eth_call" ? Promise.resolve(refusal(-32_000, "missing trie node")) : askNode()
    )
    const { receipts, requestStatus } = await ask([hash], { rpc: node.url })
    expect(requestStatus).toBe(200)
    expect(receipts.map(({ error, status, txHash }) => ({ status, txHash, error }))).toEqual([
      { status: 0, txHash: hash, error: null }
    ])
  })
})

describe("a hash", () => {
  it("named twice is answered once, in its first place, whatever its outcome", async () => {
    const one = await send({ to: ZeroAddress, value: 1n })
    const two = await send({ to: ZeroAddress, value: 2n })
    const nowhere = `0x${"11".repeat(32)}`
    const { receipts, requestStatus, unknown } = await ask([
      two,
      nowhere,
      one,
      two,
      nowhere,
      one.toUpperCase().replace("0X", "0x")
    ])
    expect(receipts.map(({ txHash }) => txHash)).toEqual([two, one])
    expect({ requestStatus, unknown }).toEqual({ requestStatus: 202, unknown: [nowhere] })
  })
})

describe("a node whose receipts are not whole", () => {
  /** Replies of the real node, with `change` applied for one hash. */
  const spoil = (hash: string, change: (receipt: Readonly<Record<string, unknown>>) => unknown) =>
    node.behave(async (question, askNode) => {
      const answer = await askNode()
      const isIt = question.method === "eth_getTransactionReceipt" && question.params[0] === hash
      return isIt && "result" in answer ? { result: change(Object(answer.result)) } : answer
    })

  it("spoils none of the others, and each error names the missing part", async () => {
    const one = await send(call(service.info.token, token, "mint", anvilKey(9).address, 1))
    const other = await send(call(service.info.token, token, "mint", anvilKey(9).address, 2))
    const cases: ReadonlyArray<readonly [object, string, number]> = [
      [{ cumulativeGasUsed: undefined }, "cumulativeGasUsed", 1],
      [{ gasUsed: undefined }, "gasUsed", 1],
      [{ gasUsed: 21_000 }, "gasUsed", 1],
      [{ logs: undefined }, "logs", 0],
      [{ logs: [{ address: service.info.token }] }, "logs.0.topics", 0]
    ]
    for (const [change, name, logs] of cases) {
      spoil(one, (receipt) => ({ ...receipt, ...change }))
      const { receipts, requestStatus } = await ask([one, other], { rpc: node.url })
      expect(requestStatus).toBe(200)
      expect(receipts.map(({ missing, status, txHash }) => ({ missing, status, txHash }))).toEqual([
        { txHash: one, status: 1, missing: [name] },
        { txHash: other, status: 1, missing: undefined }
      ])
      expect(receipts.map((receipt) => receipt.logs.length)).toEqual([logs, 1])
    }
  })

  it("leaves a transaction pending when its success is missing, and gives the reason", async () => {
    const one = await send({ to: ZeroAddress, value: 1n })
    const other = await send({ to: ZeroAddress, value: 2n })
    const cases: ReadonlyArray<readonly [object, string]> = [
      [{ status: undefined }, "status"],
      [{ status: 1 }, "status"],
      [{ blockHash: undefined }, "blockHash"],
      [{ blockNumber: "5" }, "blockNumber"],
      [{ transactionHash: other }, "transactionHash"]
    ]
    for (const [change, name] of cases) {
      spoil(one, (receipt) => ({ ...receipt, ...change }))
      const answer = await ask([one, other], { rpc: node.url })
      expect({ ...answer, receipts: answer.receipts.map(({ txHash }) => txHash) }).toEqual({
        requestStatus: 202,
        receipts: [other],
        pending: [one],
        unknown: [],
        incomplete: [{ txHash: one, missing: [name] }]
      })
    }
  })

  it("is queried for the receipts' own blocks when its latest block is broken, and the error says where these lack facts too", async () => {
    const one = await send({ to: ZeroAddress, value: 1n })
    const unreadable = (isUnreadable: (tag: unknown) => boolean) =>
      node.behave((question, askNode) =>
        question.method === "eth_getBlockByNumber" && isUnreadable(question.params[0])
          ? Promise.resolve({ result: { number: 7 } })
          : askNode()
      )
    unreadable((tag) => tag === "latest")
    const { receipts, requestStatus } = await ask([one], { rpc: node.url })
    expect([requestStatus, receipts.map(({ txHash }) => txHash)]).toEqual([200, [one]])
    unreadable(() => true)
    expect(await ask([one], { rpc: node.url })).toEqual({
      requestStatus: 202,
      receipts: [],
      pending: [one],
      unknown: [],
      incomplete: [{ txHash: one, missing: ["block"] }]
    })
  })

  it("with broken transactions still reports a waiting one", async () => {
    const hash = `0x${"77".repeat(32)}`
    node.behave((question, askNode) =>
      question.method === "eth_getTransactionByHash" ? Promise.resolve({ result: { hash } }) : askNode()
    )
    expect((await ask([hash], { rpc: node.url })).pending).toEqual([hash])
  })
})

describe("the cost of a request of hashes", () => {
  it("256 mined ones: one JSON-RPC batch, and one answer with every receipt in order", async () => {
    await service.provider.send("evm_setAutomine", [false])
    const sender = anvilKey(5).connect(service.provider)
    const nonce = await sender.getNonce()
    const hashes: Array<string> = []
    for (let n = 0; n < 256; n++) {
      const raw = await sender.signTransaction({
        chainId: service.info.chainId,
        type: 2,
        to: at.sender,
        value: 0n,
        nonce: nonce + n,
        gasLimit: 50_000n,
        maxFeePerGas: 10n ** 10n,
        maxPriorityFeePerGas: 1n
      })
      hashes.push(await service.provider.send("eth_sendRawTransaction", [raw]))
    }
    await service.provider.send("evm_mine", [])
    await service.provider.send("evm_setAutomine", [true])
    for (const count of [1, 10, 256]) {
      await ask([])
      proxy.take()
      const answer = await ask(hashes.slice(0, count))
      const seen = proxy.take()
      const { calls, roundTrips } = CountingProxy.cost(
        seen.map(({ methods }) => ({ methods: [...methods, "counted"] }))
      )
      console.log(`/receipt of ${count}: ${roundTrips} round trips, ${calls - seen.length} calls`)
      // The latest block is read in the same batch: it shows which receipts are of sealed blocks.
      expect(seen.map(({ methods }) => methods.length)).toEqual([count + 1])
      expect(answer.requestStatus).toBe(200)
      expect(answer.receipts.map(({ txHash }) => txHash)).toEqual(hashes.slice(0, count))
    }
  })

  it("a failed one: two more calls for its reason", async () => {
    const hash = await send(call(service.info.reverter, reverter, "failWithReason", "counted"))
    await ask([])
    proxy.take()
    expect((await ask([hash])).receipts[0]?.error).toBe("counted")
    expect(proxy.take().map(({ methods }) => methods.join())).toEqual([
      "eth_getTransactionReceipt,eth_getBlockByNumber",
      "eth_getTransactionByHash",
      "eth_call"
    ])
  })
})
