import { Interface } from "ethers"
import { describe, expect, it } from "vitest"
import {
  anvilKey,
  elementAt,
  type OperationResult,
  type TransactionResult
} from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()

const gwei = 10n ** 9n
const recipient = "0x000000000000000000000000000000000000dEaD"

const request = (call: object, settings: object = {}) => ({
  ...call,
  settings: { rpc: service.info.rpc, signer: service.info.settings.signer, ...settings }
})
const transact = (call: object, settings: object = {}) =>
  service.ok<TransactionResult>("/transactSigner", request(call, settings))
const refused = (status: number, body: unknown) => service.refused(status, "/transactSigner", body)

const onReverter = (funcSignature: string, funcParams: ReadonlyArray<unknown> = [], rest: object = {}) => ({
  to: service.info.reverter,
  funcSignature,
  funcParams,
  ...rest
})

const nonce = () => service.provider.getTransactionCount(service.signer.address)
const result = ({ returnData }: TransactionResult): OperationResult => elementAt(returnData, 0)

const sent = async (txHash: string) => {
  const transaction = await service.provider.getTransaction(txHash)
  const receipt = await service.provider.getTransactionReceipt(txHash)
  if (transaction === null || receipt === null) throw new Error(`${txHash} is not on the chain`)
  return { transaction, receipt }
}

describe("a transaction of the signer itself", () => {
  it("calls a function from its own address, and reports its return value and logs", async () => {
    const signature = "succeed(string) returns (uint256)"
    const answer = await transact(onReverter(signature, ["hello"], { value: "0x7" }))
    const { receipt, transaction } = await sent(answer.txHash)
    expect({ from: transaction.from, to: transaction.to, value: transaction.value }).toEqual({
      from: service.signer.address,
      to: service.info.reverter,
      value: 7n
    })
    const abi = new Interface(["function succeed(string) payable"])
    expect(transaction.data).toBe(abi.encodeFunctionData("succeed", ["hello"]))
    expect(answer).toMatchObject({
      status: 1,
      txHashes: [answer.txHash],
      gasUsed: Number(receipt.gasUsed),
      cumulativeGasUsed: Number(receipt.cumulativeGasUsed),
      effectiveGasPrice: String(receipt.gasPrice)
    })
    expect(result(answer)).toEqual({
      userOpHash: null,
      success: true,
      error: null,
      result: "7",
      txHash: answer.txHash
    })
    expect(answer.logs.map(({ address, logIndex, topics }) => ({ address, logIndex, topics }))).toEqual(
      receipt.logs.map(({ address, index, topics }) => ({ address, logIndex: index, topics }))
    )
  })

  it("without a function transfers value, to an address and to a payable contract", async () => {
    const before = await service.provider.getBalance(recipient)
    const plain = await transact({ to: recipient, value: "12345" })
    expect(await service.provider.getBalance(recipient)).toBe(before + 12_345n)
    expect(result(plain)).toMatchObject({ success: true, error: null, result: "0x" })
    expect((await sent(plain.txHash)).transaction.data).toBe("0x")

    const entryPoint = service.info.entryPoints["v0.7"]
    const received = await transact({ to: entryPoint, value: "77" })
    expect(received.status).toBe(1)
    expect(received.logs.map(({ address, args, eventName }) => ({ address, eventName, args }))).toEqual([
      {
        address: entryPoint,
        eventName: "Deposited",
        args: { account: service.signer.address, totalDeposit: "77" }
      }
    ])
  })

  it("is not sent when it would revert; the answer has the reason in words", async () => {
    const before = await nonce()
    const cases: ReadonlyArray<readonly [object, string, ReadonlyArray<string>?]> = [
      [onReverter("failWithReason(string)", ["not today"]), "not today"],
      [
        onReverter("failCustom(uint256,uint256)", ["7", "5"]),
        `Refused(who: ${service.signer.address}, needed: 7, had: 5)`,
        ["error Refused(address who, uint256 needed, uint256 had)"]
      ]
    ]
    for (const [call, message, useABI = []] of cases) {
      const answer = await refused(422, request(call, { useABI }))
      expect(answer).toMatchObject({ code: "execution_failed", error: "execution failed" })
      expect(answer.details).toEqual([{ path: "", message }])
      expect(answer.returnData).toEqual([
        { "0": { userOpHash: null, success: false, error: message, result: null, txHash: null } }
      ])
    }
    expect(await nonce()).toBe(before)
  })

  it("is not sent when the signer cannot pay for it", async () => {
    const before = await nonce()
    const balance = await service.provider.getBalance(service.signer.address)
    for (const value of [balance, balance + 1n, 2n ** 256n - 1n]) {
      const { code, details, error, returnData } = await refused(
        422,
        request({ to: recipient, value: String(value) })
      )
      expect({ code, error }).toEqual({ code: "insufficient_funds", error: "insufficient funds" })
      expect(returnData).toMatchObject([{ "0": { success: false, error: details[0]?.message } }])
      expect(details.map(({ path }) => path)).toEqual(["settings.signer"])
      expect(BigInt(String(details[0]?.missing))).toBeGreaterThanOrEqual(value - balance)
    }
    expect(await nonce()).toBe(before)
  })
})

describe("the gas settings of transactions", () => {
  const call = () => onReverter("bump(bytes32)", [`0x${"01".repeat(32)}`])

  it("raise the gas limit over the node's estimate by a percentage, by default 50", async () => {
    await transact(call())
    const abi = new Interface(["function bump(bytes32)"])
    const estimate = await service.provider.estimateGas({
      from: service.signer.address,
      to: service.info.reverter,
      data: abi.encodeFunctionData("bump", [`0x${"01".repeat(32)}`])
    })
    const limit = async (settings: object) =>
      (await sent((await transact(call(), settings)).txHash)).transaction.gasLimit
    expect(await limit({ percentTxGasOvershoot: 0 })).toBe(estimate)
    expect(await limit({})).toBe((estimate * 150n + 99n) / 100n)
    expect(await limit({ percentTxGasOvershoot: "12.5" })).toBe((estimate * 1_125n + 999n) / 1_000n)
    expect(await limit({ percentTxGasOvershoot: 1_000, percentUserOpGasOvershoot: 3 })).toBe(estimate * 11n)
  })

  it("raise the price over that of the next block by a percentage, by default 20", async () => {
    const price = async (settings: object) => {
      await service.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${(8n * gwei).toString(16)}`])
      await service.provider.send("evm_mine", [])
      const { baseFeePerGas } = await service.provider.send("eth_feeHistory", ["0x1", "latest", []])
      const { transaction } = await sent((await transact(call(), settings)).txHash)
      const { maxFeePerGas, maxPriorityFeePerGas } = transaction
      if (maxFeePerGas === null || maxPriorityFeePerGas === null) throw new Error("expected type 2")
      return { paid: maxFeePerGas, asked: BigInt(baseFeePerGas.at(-1)) + maxPriorityFeePerGas }
    }
    const ceil = (asked: bigint, thousandths: bigint) => (asked * thousandths + 999n) / 1_000n
    const none = await price({ percentTxGasPriceOvershoot: "0" })
    expect(none.paid).toBe(none.asked)
    const plain = await price({})
    expect(plain.paid).toBe(ceil(plain.asked, 1_200n))
    const odd = await price({ percentTxGasPriceOvershoot: "33.3" })
    expect(odd.paid).toBe(ceil(odd.asked, 1_333n))
  })
})

describe("concurrent transactions of one signer", () => {
  it("land all, each once, under nonces without a gap", async () => {
    const before = await nonce()
    const values = Array.from({ length: 12 }, (_, n) => n + 1)
    const held = await service.provider.getBalance(anvilKey(8).address)
    const answers = await Promise.all(
      values.map((value) => transact({ to: anvilKey(8).address, value: String(value) }))
    )
    expect(answers.map(({ status }) => status)).toEqual(values.map(() => 1))
    expect(new Set(answers.map(({ txHash }) => txHash)).size).toBe(values.length)
    expect(await nonce()).toBe(before + values.length)
    expect(await service.provider.getBalance(anvilKey(8).address)).toBe(held + 78n)
  })
})
