import * as Result from "effect/Result"
import { beforeAll, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/endpoints/wallets/CreateWallets.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { startFaultyNode } from "../../support/stack/FaultyNode.js"
import { type Sponsored, sponsored } from "../../support/stack/Sponsored.js"
import { startStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"

const percent = (value: number) => Result.getOrThrow(Percent.from(value))

describe("a caller that tries to drain the sponsor", () => {
  const stack = use(startStack)
  let sponsor: Sponsored
  const node = use(() => startFaultyNode(stack.anvil.url))
  beforeAll(async () => {
    sponsor = await sponsored(stack)
    await stack.ask(
      CreateWallets.run(stack.caller(), {
        accounts: [{ salt: "main", walletCustody: 1 }],
        settings: sponsor.settings
      })
    )
  })

  const handedOut = async (more: object = {}) => {
    const { error, userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [sponsor.mint("main", 1n)],
        settings: { ...sponsor.settings, ...more }
      })
    )
    expect(error).toBeNull()
    const [op] = userOps
    if (op === undefined) throw new Error("no op was issued")
    return op
  }
  const posted = (encodedUserOp: string, userOpHash: string) => ({
    operations: [
      {
        encodedUserOp: Hex.unsafe(encodedUserOp),
        userOpHash: Hex.unsafe32(userOpHash),
        walletCustody: 1 as const
      }
    ],
    settings: sponsor.settings
  })
  const untouched = async (attack: () => Promise<void>) => {
    await sponsor.settled()
    const before = [await sponsor.deposit(), await sponsor.minted(), await sponsor.figures()]
    await attack()
    expect([await sponsor.deposit(), await sponsor.minted(), await sponsor.figures()]).toEqual(before)
  }

  it.each(["percentTxGasPriceOvershoot", "percentUserOpGasOvershoot"])(
    "is refused a huge %s, which would be paid to the submitter",
    (field) =>
      untouched(async () => {
        const refused = await stack.refused(
          ExecuteOperations.run(stack.caller(), {
            operations: [sponsor.mint("main", 1n)],
            settings: { ...sponsor.settings, [field]: percent(101) }
          })
        )
        expect(refused).toMatchObject({
          code: "invalid_request",
          details: [
            { path: `settings.${field}`, message: "expected at most 100 with the operator's paymaster" }
          ]
        })
      })
  )

  it("gets only the chain id read from its node", async () => {
    const asked = new Set<string>()
    node.behave(async ({ method }, ask) => {
      asked.add(method)
      return method === "eth_chainId" ? ask() : { result: "0xffffffffffffffffff" }
    })
    const { status } = await stack.ask(
      ExecuteOperations.run(stack.caller(), {
        operations: [sponsor.mint("main", 1n)],
        settings: { ...sponsor.settings, rpc: node.url }
      })
    )
    expect(status).toBe(1)
    expect([...asked]).toEqual(["eth_chainId"])
  })

  it("is paid for an op that was issued once, however often it is posted", async () => {
    const { encodedUserOp, userOpHash } = await handedOut()
    const before = { minted: await sponsor.minted(), ...(await sponsor.settled()) }
    const deposit = await sponsor.deposit()
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        stack.ask(ExecuteEncoded.run(stack.caller(), posted(encodedUserOp, userOpHash)))
      )
    )
    expect(new Set(answers.map(({ txHash }) => txHash)).size).toBe(1)
    expect(answers.map(({ status }) => status)).toEqual([1, 1, 1, 1])
    expect((await sponsor.minted()) - before.minted).toBe(1n)
    const { booked } = await sponsor.settled()
    expect(booked - before.booked).toBe(deposit - (await sponsor.deposit()))
  })

  it.each<[string, (op: UserOperation.UserOperation) => Partial<UserOperation.UserOperation>]>([
    ["its limits", ({ callGasLimit }) => ({ callGasLimit: callGasLimit + 1n })],
    ["its fees", ({ maxFeePerGas }) => ({ maxFeePerGas: maxFeePerGas * 2n })],
    ["its preVerificationGas", ({ preVerificationGas }) => ({ preVerificationGas: preVerificationGas + 1n })],
    ["its call", () => ({ callData: Hex.empty })],
    ["its nonce", ({ nonce }) => ({ nonce: ((nonce >> 64n) + 7n) << 64n })],
    [
      "the length of the sponsorship",
      ({ paymasterAndData }) => ({
        paymasterAndData: Hex.unsafe(`${paymasterAndData.slice(0, -24)}${"f".repeat(12)}${"0".repeat(12)}`)
      })
    ]
  ])("is not paid for an issued op with %s altered", (_, altered) =>
    untouched(async () => {
      const { encodedUserOp } = await handedOut()
      const op = Result.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(encodedUserOp)))
      const other = { ...op, ...altered(op) }
      const { chainId } = stack.anvil
      const hash = UserOperation.hash("v0.7", sponsor.settings.entryPoint, BigInt(chainId), other)
      const refused = await stack.refused(
        ExecuteEncoded.run(stack.caller(), posted(UserOperation.encode("v0.7", other), hash))
      )
      expect(refused.code).toBe("not_sponsored")
    })
  )

  it("is not paid for an op whose ten minutes are over", async () => {
    const { encodedUserOp, userOpHash } = await handedOut()
    await stack.provider.send("evm_increaseTime", [601])
    await stack.provider.send("evm_mine", [])
    await untouched(async () => {
      const refused = await stack.refused(
        ExecuteEncoded.run(stack.caller(), posted(encodedUserOp, userOpHash))
      )
      expect(refused).toMatchObject({ code: "sponsorship_over" })
    })
  })
})
