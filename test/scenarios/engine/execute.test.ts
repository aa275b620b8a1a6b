import { solidityPackedKeccak256 } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe("execute", () => {
  let stack: Stack
  let token: Address.Address
  let reverter: Address.Address
  beforeAll(async () => {
    stack = await startStack()
    token = Address.unsafe(await stack.token.getAddress())
    reverter = Address.unsafe(await stack.reverter.getAddress())
  })
  afterAll(() => stack.stop())

  const transfer = (salt: string, amount: string, to: string = dead): Operation => ({
    salt,
    walletCustody: 0,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [to, amount]
  })
  const execute = (operations: ReadonlyArray<Operation>, settings = {}) =>
    ExecuteOperations.run(stack.caller(), { operations, settings: { ...stack.settings, ...settings } })

  it("one reverting operation among three fails alone, with its reason decoded", async () => {
    const [wallet] = await stack.create("three")
    await stack.mint(String(wallet), 10n)
    const refused: Operation = {
      salt: "three",
      walletCustody: 1,
      to: reverter,
      funcSignature: "failCustom(uint256,uint256)",
      funcParams: ["7", "5"]
    }
    const result = await stack.ask(
      execute([transfer("three", "1"), refused, transfer("three", "2")], {
        useABI: ["error Refused(address who, uint256 needed, uint256 had)"]
      })
    )
    expect(result.status).toBe(4)
    expect(result.returnData.map((element, index) => element[index]?.success)).toEqual([true, false, true])
    expect(result.returnData[1]?.["1"]?.error).toBe(`Refused(who: ${wallet}, needed: 7, had: 5)`)
    expect(await stack.balanceOf(dead)).toBe(3n)
  })

  it.each([
    ["failWithReason(string)", ["too poor"], "too poor"],
    ["failOverflow(uint256)", ["1"], "Panic(0x11): arithmetic overflow or underflow"],
    ["failWithoutReason()", [], "reverted without a reason"]
  ])(
    "%s alone is 422 execution failed with its reason, and nothing is sent",
    async (funcSignature, funcParams, reason) => {
      await stack.create("alone")
      const before = await stack.provider.getTransactionCount(stack.signer.address)
      const failure = await stack.refused(
        execute([{ salt: "alone", walletCustody: 1, to: reverter, funcSignature, funcParams }])
      )
      expect(failure).toMatchObject({
        _tag: "Unprocessable",
        code: "execution_failed",
        message: "execution failed"
      })
      expect(failure.details).toEqual([{ path: "operations[0]", message: reason }])
      expect(failure).toMatchObject({
        extra: { returnData: [{ "0": { success: false, error: reason, txHash: null } }] }
      })
      expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before)
    }
  )

  it("approve and then transferFrom work in one request", async () => {
    const [owner, spender] = await stack.create("approver", "spender")
    await stack.mint(String(owner), 5n)
    const result = await stack.ask(
      execute([
        {
          salt: "approver",
          walletCustody: 1,
          to: token,
          funcSignature: "approve(address,uint256)",
          funcParams: [spender, "5"]
        },
        {
          salt: "spender",
          walletCustody: 1,
          to: token,
          funcSignature: "transferFrom(address,address,uint256)",
          funcParams: [owner, spender, "5"]
        }
      ])
    )
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(String(spender))).toBe(5n)
  })

  it("twenty requests at once on one wallet all land, each once", async () => {
    const [wallet] = await stack.create("busy")
    await stack.mint(String(wallet), 1_000n)
    const to = Address.unsafe(`0x${"ab".repeat(20)}`)
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => stack.ask(execute([transfer("busy", String(n + 1), to)])))
    )
    expect(results.map(({ status }) => status)).toEqual(Array(20).fill(1))
    expect(await stack.balanceOf(to)).toBe(210n)
    expect(new Set(results.map(({ txHash }) => txHash)).size).toBeLessThan(20)
  })

  it("a value is sent, and a wallet can be swept down to what gas needs", async () => {
    await stack.create("sweep")
    const to = Address.unsafe(`0x${"cd".repeat(20)}`)
    const send = (value: bigint): Operation => ({
      salt: "sweep",
      walletCustody: 1,
      to,
      funcSignature: "receive()",
      value
    })
    expect((await stack.ask(execute([send(ether / 2n)]))).status).toBe(1)
    const left = await stack.provider.getBalance(stack.predict("sweep"))
    const most = left - 500_000n * 3_000_000_000n
    expect((await stack.ask(execute([send(most)]))).status).toBe(1)
    expect(await stack.provider.getBalance(to)).toBe(ether / 2n + most)
  })

  it("a wallet without gas money is 422 insufficient funds, in words and figures", async () => {
    const [wallet] = await stack.create("broke")
    await stack.fund(String(wallet), 0n)
    const deposit = solidityPackedKeccak256(["uint256", "uint256"], [wallet, 0])
    await stack.provider.send("anvil_setStorageAt", [
      stack.settings.entryPoint,
      deposit,
      `0x${"00".repeat(32)}`
    ])
    const failure = await stack.refused(execute([transfer("broke", "0")]))
    expect(failure).toMatchObject({ _tag: "Unprocessable", message: "insufficient funds" })
  })

  it("a value above the balance is insufficient funds, unless an earlier operation brings it in", async () => {
    await stack.create("giver", "taker")
    const pay = (salt: string, to: string, value: bigint): Operation => ({
      salt,
      walletCustody: 1,
      to: Address.unsafe(to),
      funcSignature: "receive()",
      value
    })
    const failure = await stack.refused(execute([pay("taker", dead, 2n * ether)]))
    expect(failure).toMatchObject({ _tag: "Unprocessable", message: "insufficient funds" })
    expect(failure.details[0]?.message).toMatch(/lacks 1\d{18} wei$/)
    const half = ether / 2n
    const result = await stack.ask(
      execute([pay("giver", stack.predict("taker"), half), pay("taker", dead, ether + half / 2n)])
    )
    expect(result.status).toBe(1)
  })

  it("a signer that owns nothing is 422 threshold not met", async () => {
    await stack.create("mine")
    const failure = await stack.refused(
      execute([transfer("mine", "0")], { signer: { clientId: "dev", versionId: "2" } })
    )
    expect(failure.message).toBe("threshold not met: have 0 of 1")
  })

  it("a wallet that is not deployed, and code that is no wallet, are told apart", async () => {
    const failure = await stack.refused(execute([transfer("never", "0")]))
    expect(failure.message).toBe("wallet not deployed")
    const { salt: _, ...rest } = transfer("x", "0")
    const foreign = await stack.refused(execute([{ ...rest, wallet: token }]))
    expect(foreign.message).toBe("wallet not supported")
  })

  it.each([
    [{ funcSignature: "transfer(address," }, "invalid function signature", "operations[0].funcSignature"],
    [{ funcParams: ["0x1", "2"] }, "invalid function parameter 0 (address): ", "operations[0].funcParams[0]"],
    [{ validAfter: 6, validUnitl: 5 }, "invalid request", "operations[0].validUnitl"]
  ])("%j is refused before the chain is asked", async (change, message, path) => {
    const failure = await stack.refused(
      execute([{ ...transfer("x", "1"), ...change }], { rpc: "http://127.0.0.1:1" })
    )
    expect(failure._tag).toBe("InvalidRequest")
    expect(failure.message.startsWith(message)).toBe(true)
    expect(failure.details[0]?.path).toBe(path)
  })

  it("an RPC that does not answer is 400 invalid rpc", async () => {
    const failure = await stack.refused(execute([transfer("x", "1")], { rpc: "http://127.0.0.1:1" }))
    expect(failure).toMatchObject({ _tag: "InvalidRequest", message: "invalid rpc" })
    expect(failure.details[0]?.path).toBe("settings.rpc")
  })

  it("wallet and salt must name the same wallet", async () => {
    const [wallet] = await stack.create("both")
    await stack.mint(String(wallet), 1n)
    expect((await stack.ask(execute([{ ...transfer("both", "1"), wallet: String(wallet) }]))).status).toBe(1)
    const failure = await stack.refused(execute([{ ...transfer("both", "1"), wallet: dead }]))
    expect(failure.details[0]?.path).toBe("operations[0].wallet")
  })
})
