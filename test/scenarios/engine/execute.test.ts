import { solidityPackedKeccak256 } from "ethers"
import { describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { Address, errorsOf, useStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe("execute", () => {
  const stack = useStack()
  const execute = (operations: ReadonlyArray<Operation>, settings = {}) =>
    stack.ask(stack.execute(operations, settings))
  const refused = (operations: ReadonlyArray<Operation>, settings = {}) =>
    stack.refused(stack.execute(operations, settings))
  const reverting = (salt: string, funcSignature: string, funcParams: ReadonlyArray<string>) =>
    stack.hit(salt, "", { to: Address.unsafe(String(stack.reverter.target)), funcSignature, funcParams })
  const funded = async (salt: string, tokens: bigint) => {
    const [wallet = dead] = await stack.create(salt)
    await stack.mint(wallet, tokens)
    return wallet
  }

  it("one reverting operation among three fails alone, with its reason decoded", async () => {
    const wallet = await funded("three", 10n)
    const result = await execute(
      [
        stack.transfer("three", dead, "1"),
        reverting("three", "failCustom(uint256,uint256)", ["7", "5"]),
        stack.transfer("three", dead, "2")
      ],
      { useABI: ["error Refused(address who, uint256 needed, uint256 had)"] }
    )
    expect(result.status).toBe(4)
    expect(errorsOf(result)).toEqual([null, `Refused(who: ${wallet}, needed: 7, had: 5)`, null])
    expect(await stack.balanceOf(dead)).toBe(3n)
  })

  it.each([
    ["failWithReason(string)", ["too poor"], "too poor"],
    ["failOverflow(uint256)", ["1"], "Panic(0x11): arithmetic overflow or underflow"]
  ])(
    "%s alone is 422 execution failed with its reason, and nothing is sent",
    async (name, params, reason) => {
      await stack.create("alone")
      const before = await stack.nonce()
      expect(await refused([reverting("alone", name, params)])).toMatchObject({
        _tag: "Unprocessable",
        code: "execution_failed",
        message: "execution failed",
        details: [{ path: "operations[0]", message: reason }],
        extra: { returnData: [{ "0": { success: false, error: reason, txHash: null } }] }
      })
      expect(await stack.nonce()).toBe(before)
    }
  )

  it("approve and then transferFrom work in one request", async () => {
    const owner = await funded("approver", 5n)
    const [spender = dead] = await stack.create("spender")
    const approved = { funcSignature: "approve(address,uint256)", funcParams: [spender, "5"] }
    const taken = {
      funcSignature: "transferFrom(address,address,uint256)",
      funcParams: [owner, spender, "5"]
    }
    const result = await execute([
      stack.transfer("approver", dead, "", approved),
      stack.transfer("spender", dead, "", taken)
    ])
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(spender)).toBe(5n)
  })

  it("twenty requests at once on one wallet all land, each once", async () => {
    await funded("busy", 1_000n)
    const to = `0x${"ab".repeat(20)}`
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => execute([stack.transfer("busy", to, String(n + 1))]))
    )
    expect(results.map(({ status }) => status)).toEqual(Array(20).fill(1))
    expect(await stack.balanceOf(to)).toBe(210n)
    expect(new Set(results.map(({ txHash }) => txHash)).size).toBeLessThan(20)
  })

  it("a value is sent, and a wallet can be swept down to what gas needs", async () => {
    await stack.create("sweep")
    const to = `0x${"cd".repeat(20)}`
    expect((await execute([stack.pay("sweep", to, ether / 2n)])).status).toBe(1)
    const most = (await stack.provider.getBalance(stack.predict("sweep"))) - 500_000n * 3_000_000_000n
    expect((await execute([stack.pay("sweep", to, most)])).status).toBe(1)
    expect(await stack.provider.getBalance(to)).toBe(ether / 2n + most)
  })

  it("a wallet without gas money is 422 insufficient funds", async () => {
    const wallet = await funded("broke", 0n)
    await stack.fund(wallet, 0n)
    const deposit = solidityPackedKeccak256(["uint256", "uint256"], [wallet, 0])
    const nothing = `0x${"00".repeat(32)}`
    await stack.provider.send("anvil_setStorageAt", [stack.settings.entryPoint, deposit, nothing])
    expect(await refused([stack.transfer("broke", dead, "0")])).toMatchObject({
      _tag: "Unprocessable",
      message: "insufficient funds"
    })
  })

  it("a value above the balance is insufficient funds, unless an earlier operation brings it in", async () => {
    await stack.create("giver", "taker")
    expect(await refused([stack.pay("taker", dead, 2n * ether)])).toMatchObject({
      _tag: "Unprocessable",
      message: "insufficient funds",
      details: [{ message: expect.stringMatching(/lacks 1\d{18} wei$/) }]
    })
    const brought = stack.pay("giver", stack.predict("taker"), ether / 2n)
    expect((await execute([brought, stack.pay("taker", dead, (ether * 5n) / 4n)])).status).toBe(1)
  })

  it("a signer that owns nothing, a wallet that is not deployed, and code that is no wallet are told apart", async () => {
    await stack.create("mine")
    const second = { signer: { clientId: "dev", versionId: "2" } }
    const { salt: _, ...unsalted } = stack.transfer("", dead)
    const token = String(stack.token.target)
    const failures = [
      await refused([stack.transfer("mine", dead, "0")], second),
      await refused([stack.transfer("never", dead, "0")]),
      await refused([{ ...unsalted, walletCustody: 0, wallet: token }])
    ]
    expect(failures.map(({ message }) => message)).toEqual([
      "threshold not met: have 0 of 1",
      "wallet not deployed",
      "wallet not supported"
    ])
  })

  it.each([
    [{ funcSignature: "transfer(address," }, "invalid function signature", "operations[0].funcSignature"],
    [{ funcParams: ["0x1", "2"] }, "invalid function parameter 0 (address): ", "operations[0].funcParams[0]"],
    [{ validAfter: 6, validUnitl: 5 }, "invalid request", "operations[0].validUnitl"],
    [{}, "invalid rpc", "settings.rpc"]
  ])("%j at a node that does not answer is refused: %s", async (change, message, path) => {
    const failure = await refused([{ ...stack.transfer("x", dead), ...change }], {
      rpc: "http://127.0.0.1:1"
    })
    expect(failure._tag).toBe("InvalidRequest")
    expect(failure.message.startsWith(message)).toBe(true)
    expect(failure.details[0]?.path).toBe(path)
  })

  it("wallet and salt must name the same wallet", async () => {
    const wallet = await funded("both", 1n)
    expect((await execute([{ ...stack.transfer("both", dead), wallet }])).status).toBe(1)
    const failure = await refused([{ ...stack.transfer("both", dead), wallet: dead }])
    expect(failure.details[0]?.path).toBe("operations[0].wallet")
  })
})
