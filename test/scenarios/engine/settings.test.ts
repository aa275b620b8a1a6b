import * as Either from "effect/Either"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

const transfer = async (stack: Stack, salt: string, amount: string): Promise<Operation> => ({
  salt,
  walletCustody: 1,
  to: Address.unsafe(await stack.token.getAddress()),
  funcSignature: "transfer(address,uint256)",
  funcParams: [dead, amount]
})

describe.each(["v0.6", "v0.7", "v0.8"] as const)("buffers on EntryPoint %s", (version) => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack({ entryPoint: version })
    for (const wallet of await stack.create("buffered")) await stack.mint(wallet, 100n)
  })
  afterAll(() => stack.stop())

  it.each([
    ["none at all", Percent.zero],
    ["eleven times as much", Either.getOrThrow(Percent.from(1_000))]
  ])("%s: operations go, alone, together, and by way of an estimate", async (_, percent) => {
    const settings = {
      ...stack.settings,
      percentUserOpGasOvershoot: percent,
      percentTxGasOvershoot: percent,
      percentTxGasPriceOvershoot: percent
    }
    const operation = await transfer(stack, "buffered", "1")
    for (const operations of [[operation], [operation, operation, operation]])
      expect((await stack.ask(ExecuteOperations.run(stack.caller(), { operations, settings }))).status).toBe(
        1
      )
    const { userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), { operations: [operation, operation], settings })
    )
    const encoded = userOps.map(({ encodedUserOp, userOpHash }) => ({
      encodedUserOp: Hex.unsafe(encodedUserOp),
      userOpHash: Hex.unsafe32(userOpHash),
      walletCustody: 1 as const
    }))
    expect(
      (await stack.ask(ExecuteEncoded.run(stack.caller(), { operations: encoded, settings }))).status
    ).toBe(1)
  })
})

describe("a chain with blocks of a second, settled two blocks deep", () => {
  it("carries ten requests at once, in nonce order", async () => {
    const stack = await startStack({ profile: { confirmations: 2, settledDepth: 2 } })
    try {
      const wallet = stack.predict("slow")
      await stack.fund(wallet, ether)
      await stack.provider.send("evm_setIntervalMining", [1])
      const created = await stack.ask(
        CreateWallets.run(stack.caller(), {
          accounts: [{ salt: "slow", walletCustody: 1 }],
          settings: stack.settings
        })
      )
      expect(created.status).toBe(1)
      await stack.mint(wallet, 100n)
      const operation = await transfer(stack, "slow", "1")
      const results = await Promise.all(
        Array.from({ length: 10 }, () =>
          stack.ask(
            ExecuteOperations.run(stack.caller(), { operations: [operation], settings: stack.settings })
          )
        )
      )
      expect(results.map(({ status }) => status)).toEqual(results.map(() => 1))
      expect(await stack.balanceOf(dead)).toBe(10n)
    } finally {
      await stack.stop()
    }
  })
})

describe("the caller's node at /create", () => {
  it("is asked for its chain id, and for nothing else", async () => {
    const stack = await startStack()
    const node = await startFaultyNode(stack.anvil.url)
    try {
      const asked: Array<string> = []
      node.behave((question, ask) => {
        asked.push(question.method)
        return ask()
      })
      await stack.fund(stack.predict("own"), ether)
      const created = await stack.ask(
        CreateWallets.run(stack.caller(), {
          accounts: [{ salt: "own", walletCustody: 1 }],
          settings: { ...stack.settings, rpc: node.url }
        })
      )
      expect(created.status).toBe(1)
      expect(new Set(asked)).toEqual(new Set(["eth_chainId"]))
    } finally {
      await node.stop()
      await stack.stop()
    }
  })
})
