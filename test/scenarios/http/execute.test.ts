import { id, ZeroAddress, zeroPadValue } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import {
  anvilKey,
  elementAt,
  type Log,
  type OperationResult,
  type TransactionResult
} from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()
let wallet: string
beforeAll(async () => {
  wallet = String((await service.create("main"))[0])
})

const versions = ["v0.6", "v0.7", "v0.8"] as const
const eoa = "0x000000000000000000000000000000000000dEaD"

const request = (operations: ReadonlyArray<unknown>, settings: object = {}) => ({
  operations,
  settings: { ...service.info.settings, ...settings }
})
const execute = (operations: ReadonlyArray<unknown>, settings: object = {}) =>
  service.ok<TransactionResult>("/execute", request(operations, settings))
const refused = (status: number, operations: ReadonlyArray<unknown>, settings: object = {}) =>
  service.refused(status, "/execute", request(operations, settings))

const op = (
  to: string,
  funcSignature: string,
  funcParams: ReadonlyArray<unknown> = [],
  rest: object = {}
) => ({
  salt: "main",
  walletCustody: 1,
  to,
  funcSignature,
  funcParams,
  ...rest
})
const onReverter = (funcSignature: string, funcParams: ReadonlyArray<unknown> = [], rest: object = {}) =>
  op(service.info.reverter, funcSignature, funcParams, rest)
const mint = (to: string, amount: bigint) =>
  op(service.info.token, "mint(address,uint256)", [to, String(amount)])

const results = (result: TransactionResult): ReadonlyArray<OperationResult> =>
  result.returnData.map((_, n) => elementAt(result.returnData, n))

const state = async () => [
  await service.provider.getTransactionCount(service.signer.address),
  await service.provider.getBlockNumber()
]

/** The error of a request's only operation. */
const errorOf = async (operation: unknown, settings: object = {}) => {
  const { code, details, error, returnData } = await refused(422, [operation], settings)
  const element = elementAt(returnData, 0)
  expect({ code, error }).toEqual({ code: "execution_failed", error: "execution failed" })
  expect(details.map(({ path }) => path)).toEqual(["operations[0]"])
  expect(element).toEqual({
    userOpHash: null,
    success: false,
    error: element.error,
    result: null,
    txHash: null,
    ...(String(element.error).startsWith("reverted with 0x") && { data: expect.stringMatching(/^0x/) })
  })
  return element.error
}

describe.each(versions)("operations through EntryPoint %s", (version) => {
  const settings = () => ({ entryPoint: service.info.entryPoints[version] })

  it("all succeed in one transaction with the outcome of each: status 1", async () => {
    const result = await execute(
      [mint(wallet, 10n), op(service.info.token, "transfer(address,uint256)", [eoa, "4"])],
      settings()
    )
    expect(Object.keys(result).sort().join()).toBe(
      "cumulativeGasUsed,effectiveGasPrice,gasUsed,logs,returnData,status,txHash,txHashes"
    )
    expect(result.status).toBe(1)
    for (const element of results(result)) {
      expect(Object.keys(element).sort()).toEqual(["error", "result", "success", "txHash", "userOpHash"])
      expect(element).toMatchObject({ success: true, error: null, txHash: result.txHash })
    }
    const receipt = await service.provider.getTransactionReceipt(result.txHash)
    expect({ from: receipt?.from, to: receipt?.to, gasUsed: receipt?.gasUsed }).toEqual({
      from: service.signer.address,
      to: settings().entryPoint,
      gasUsed: BigInt(result.gasUsed)
    })
    expect(result.effectiveGasPrice).toBe(String(receipt?.gasPrice))
    const hashes = receipt?.logs.flatMap(({ topics }) =>
      topics[0] === id("UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)")
        ? [topics[1]]
        : []
    )
    expect(results(result).map(({ userOpHash }) => userOpHash)).toEqual(hashes)
    const transfers = result.logs.filter(({ eventName }) => eventName === "Transfer")
    expect(transfers.map(({ args }) => args)).toEqual([
      { from: ZeroAddress, to: wallet, value: "10" },
      { from: wallet, to: eoa, value: "4" }
    ])
    expect(transfers[0]).toMatchObject({
      address: service.info.token,
      eventDef: "event Transfer(address indexed from, address indexed to, uint256 value)",
      topics: [
        id("Transfer(address,address,uint256)"),
        zeroPadValue(ZeroAddress, 32),
        zeroPadValue(wallet, 32).toLowerCase()
      ],
      data: `0x${"0".repeat(63)}a`
    })
  })
})

describe("operations", () => {
  it("approve and then transferFrom by another wallet, in one request", async () => {
    const spender = "spender"
    const [address = ""] = await service.create(spender)
    const before = await service.token.balanceOf?.(eoa)
    const result = await execute([
      mint(wallet, 7n),
      op(service.info.token, "approve(address,uint256)", [address, "7"]),
      op(service.info.token, "transferFrom(address,address,uint256)", [wallet, eoa, "7"], { salt: spender })
    ])
    expect(results(result).map(({ error }) => error)).toEqual([null, null, null])
    expect(result.status).toBe(1)
    expect((await service.token.balanceOf?.(eoa)) - before).toBe(7n)
  })

  it("with one reverting leave that one out and give the reason: status 4", async () => {
    const before = await service.token.balanceOf?.(eoa)
    const result = await execute([
      mint(eoa, 1n),
      onReverter("failWithReason(string)", ["not today"]),
      mint(eoa, 2n)
    ])
    expect(result.status).toBe(4)
    expect(results(result).map(({ error, success }) => ({ error, success }))).toEqual([
      { error: null, success: true },
      { error: "not today", success: false },
      { error: null, success: true }
    ])
    expect(elementAt(result.returnData, 1)).toMatchObject({ txHash: null, result: null })
    expect((await service.token.balanceOf?.(eoa)) - before).toBe(3n)
    const receipt = await service.provider.getTransactionReceipt(result.txHash)
    expect(receipt?.logs.map(({ data }) => data)).toEqual(result.logs.map(({ data }) => data))
  })

  it("are refused with the reason of each when all fail, and not sent", async () => {
    const before = await state()
    const { code, details, error, returnData } = await refused(422, [
      onReverter("failAssert()"),
      onReverter("failIndex()")
    ])
    expect({ code, error }).toEqual({ code: "execution_failed", error: "execution failed" })
    expect(details.map(({ path }) => path)).toEqual(["operations[0]", "operations[1]"])
    expect([0, 1].map((n) => elementAt(returnData, n).error)).toEqual([
      expect.stringContaining("Panic(0x01)"),
      expect.stringContaining("Panic(0x32)")
    ])
    expect(await state()).toEqual(before)
  })

  it("all land when twenty concurrent requests use one wallet", async () => {
    const before = await service.token.balanceOf?.(eoa)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        service.ask<TransactionResult>("/execute", request([mint(eoa, BigInt(n + 1))]))
      )
    )
    expect(answers.map(({ body, status }) => ({ status, done: body.status }))).toEqual(
      answers.map(() => ({ status: 200, done: 1 }))
    )
    expect((await service.token.balanceOf?.(eoa)) - before).toBe(210n)
    expect(new Set(answers.map(({ body }) => elementAt(body.returnData, 0).userOpHash)).size).toBe(20)
  })
})

describe("a revert", () => {
  it.each([
    ["failRaw(bytes)", ["0xdeadbeef"], /0xdeadbeef/],
    ["failOutOfGas()", [], /./],
    ["failHuge(uint256)", ["100000"], /0xffff/],
    ["failWithReason(string)", ["r".repeat(5_000)], /^r+/]
  ])("is decoded: %s %j", async (signature, params, wanted) => {
    const error = await errorOf(onReverter(signature, params))
    expect(error).toMatch(wanted)
    expect(String(error).length).toBeLessThan(6_000)
  })
})

describe("a call", () => {
  it("sends value, and receive() is a call with empty data", async () => {
    const before = await service.provider.getBalance(eoa)
    const result = await execute([
      op(eoa, "receive()", [], { value: "5" }),
      op(eoa, "receive()", [], { value: "0x10" })
    ])
    expect(result.status).toBe(1)
    expect((await service.provider.getBalance(eoa)) - before).toBe(21n)
  })

  it("passes its value to the function, and returns the value decoded where the signature names types", async () => {
    const result = await execute(
      [
        onReverter("function succeed(string note) external payable returns (uint256 got)", ["hi"], {
          value: "123"
        }),
        onReverter("succeed(string)", ["hi"], { value: "7" })
      ],
      { useABI: ["event Succeeded(address indexed caller, uint256 value, string note)"] }
    )
    const [decoded, raw] = results(result)
    expect(JSON.stringify(decoded?.result)).toContain('"123"')
    expect(raw?.result).toBe(`0x${"0".repeat(63)}7`)
    expect(result.logs.filter(({ eventName }) => eventName === "Succeeded").map(({ args }) => args)).toEqual([
      { caller: wallet, value: "123", note: "hi" },
      { caller: wallet, value: "7", note: "hi" }
    ])
  })

  it("with more value than the wallet has is insufficient funds, and is not sent", async () => {
    const before = await state()
    const { code, details, error } = await refused(422, [
      op(eoa, "receive()", [], { value: String(10n ** 24n) })
    ])
    expect({ code, error }).toEqual({ code: "insufficient_funds", error: "insufficient funds" })
    expect(JSON.stringify(details)).toContain(wallet)
    expect(await state()).toEqual(before)
  })

  it("is insufficient funds when its wallet cannot pay for its gas, while the others go", async () => {
    const [poor = ""] = await service.create("poor")
    await service.provider.send("anvil_setBalance", [poor, "0x0"])
    // The remainder of creation's funds is deposited at v0.7.
    const unused = { entryPoint: service.info.entryPoints["v0.8"] }
    const payment = op(eoa, "receive()", [], { salt: "poor" })
    const alone = await refused(422, [payment], unused)
    expect({ code: alone.code, error: alone.error }).toEqual({
      code: "insufficient_funds",
      error: "insufficient funds"
    })
    expect(alone.details[0]).toMatchObject({ path: "operations[0]", wallet: poor, available: "0" })
    const result = await execute([payment, mint(eoa, 1n)], unused)
    expect(result.status).toBe(4)
    expect(elementAt(result.returnData, 0).error).toContain("insufficient funds")
    await service.fund(poor, BigInt(String(alone.details[0]?.missing)) * 2n)
    expect((await execute([payment], unused)).status).toBe(1)
  })

  it("is refused when its wallet does not exist, as one element's error next to a good one", async () => {
    const unborn = op(eoa, "receive()", [], { salt: "unborn" })
    const alone = await refused(422, [unborn])
    expect({ code: alone.code, error: alone.error }).toEqual({
      code: "wallet_not_deployed",
      error: "wallet not deployed"
    })
    const result = await execute([unborn, mint(eoa, 1n)])
    expect(result.status).toBe(4)
    expect(elementAt(result.returnData, 0).error).toBe("wallet not deployed")
  })

  it("is refused when its wallet's address has other code", async () => {
    const { code, error } = await refused(422, [
      { ...op(eoa, "receive()"), salt: undefined, wallet: service.info.token }
    ])
    expect({ code, error }).toEqual({ code: "wallet_not_supported", error: "wallet not supported" })
  })

  it("is refused when the signer does not own its wallet", async () => {
    const [address = ""] = await service.create("sold")
    await execute([
      {
        ...op(address, "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))", [
          ["1", "1", [anvilKey(9).address], []]
        ]),
        salt: "sold"
      }
    ])
    const { code, error } = await refused(422, [op(eoa, "receive()", [], { salt: "sold" })])
    expect({ code, error }).toEqual({ code: "threshold_not_met", error: "threshold not met: have 0 of 1" })
  })

  it.each([
    ["by wallet and custody 0", () => ({ wallet, walletCustody: 0 })],
    ["by wallet in lower case", () => ({ wallet: wallet.toLowerCase(), walletCustody: 1 })],
    ["by salt and custody 0", () => ({ salt: "main", walletCustody: 0 })],
    ["by salt and wallet that agree", () => ({ salt: "main", wallet, walletCustody: 1 })],
    ["by wallet and an empty salt", () => ({ salt: "", wallet, walletCustody: 1 })],
    ["by salt and an empty wallet", () => ({ salt: "main", wallet: "", walletCustody: 1 })]
  ])("names its wallet %s", async (_, named) => {
    const { salt: _salt, ...rest } = mint(eoa, 3n)
    const result = await execute([{ ...rest, ...named() }], {
      useABI: ["event Bumped(bytes32 indexed id, uint256 count)"]
    })
    expect(result.status).toBe(1)
    const sender = result.logs.find(({ eventName }) => eventName === "UserOperationEvent")?.args.sender
    expect(sender).toBe(wallet)
  })

  it.each<readonly [string, ReadonlyArray<string>, string, RegExp, string]>([
    [
      `f(${"(".repeat(20_000)}`,
      [],
      "invalid_function_signature",
      /^invalid function signature$/,
      "Signature"
    ],
    [
      "f(string,uint256[][])",
      ["a", "[".repeat(50_000)],
      "invalid_function_parameter",
      /^invalid function parameter 1 \(.+\): .+/,
      "Params[1]"
    ],
    ["f(uint256)", [], "invalid_function_parameter", /./, "Params"]
  ])("is refused: %.20s with %.20j", async (signature, params, code, error, place) => {
    const refusal = await refused(400, [mint(eoa, 1n), onReverter(signature, params)])
    expect([refusal.code, refusal.error]).toEqual([code, expect.stringMatching(error)])
    expect(refusal.details.map(({ path }) => path)).toEqual([`operations[1].func${place}`])
    expect(refusal.error.length + JSON.stringify(refusal.details).length).toBeLessThan(1_500)
  })

  it("is refused when its wallet is not the salt's", async () => {
    const { details } = await refused(400, [{ ...mint(eoa, 1n), wallet: eoa }])
    expect(details.map(({ path }) => path)).toEqual(["operations[0].wallet"])
  })
})

describe("logs", () => {
  const transferLog = (result: TransactionResult): Log | undefined =>
    result.logs.find(({ address }) => address === service.info.token)

  it("are decoded with useABI before anything else", async () => {
    const text = await execute([mint(eoa, 5n)], {
      useABI: ["event Transfer(address indexed payer, address indexed payee, uint256 wad)"]
    })
    expect(transferLog(text)).toMatchObject({
      eventName: "Transfer",
      eventDef: "event Transfer(address indexed payer, address indexed payee, uint256 wad)",
      args: { payer: ZeroAddress, payee: eoa, wad: "5" }
    })
    const json = await execute([mint(eoa, 5n)], {
      useABI: [
        {
          type: "event",
          name: "Transfer",
          anonymous: false,
          inputs: [
            { name: "a", type: "address", indexed: true, internalType: "address" },
            { name: "b", type: "address", indexed: true },
            { name: "c", type: "uint256" }
          ]
        }
      ]
    })
    expect(transferLog(json)?.args).toEqual({ a: ZeroAddress, b: eoa, c: "5" })
  })
})

describe("gas settings", () => {
  const gasLimit = async (settings: object) => {
    const { txHash } = await execute([mint(eoa, 1n)], settings)
    const transaction = await service.provider.getTransaction(txHash)
    const receipt = await service.provider.getTransactionReceipt(txHash)
    if (transaction === null || receipt === null) throw new Error(`${txHash} is not there`)
    return {
      maxFeePerGas: transaction.maxFeePerGas,
      ofUsed: Number(transaction.gasLimit) / Number(receipt.gasUsed)
    }
  }

  it("raise the transaction's gas limit and price by their percentages", async () => {
    const none = await gasLimit({ percentTxGasOvershoot: 0, percentTxGasPriceOvershoot: "0" })
    const twice = await gasLimit({ percentTxGasOvershoot: 100, percentTxGasPriceOvershoot: "100" })
    // Relative to the simulated gas, which is a little more than the gas in its block.
    expect(twice.ofUsed).toBeGreaterThanOrEqual(1.98)
    expect(twice.ofUsed).toBeLessThan(2.15)
    // Its ops have a separate buffer and may use it.
    expect(none.ofUsed).toBeGreaterThan(1)
    expect(none.ofUsed).toBeLessThan(1.75)
    expect(Number(twice.maxFeePerGas) / Number(none.maxFeePerGas)).toBeGreaterThan(1.6)
  })
})
