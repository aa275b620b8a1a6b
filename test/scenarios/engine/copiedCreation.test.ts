import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { Interface } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { startStandIn } from "../../support/bundler/StandIn.js"
import { npmInterface } from "../../support/lens/Abis.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { senderCreators } from "../../support/suite/Calls.js"

const creator = new Interface(["function createSender(bytes initCode) returns (address)"])

describe("a creation's authorisation, copied out of a pending bundle", () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack()
  })
  afterAll(() => stack.stop())

  /** The calldata of the EOA's pending transaction. */
  const pendingCall = async (eoa: string): Promise<string> => {
    for (;;) {
      const { pending } = await stack.provider.send("txpool_content", [])
      const [, own] =
        Object.entries<Record<string, { input: string }>>(pending).find(
          ([address]) => address.toLowerCase() === eoa.toLowerCase()
        ) ?? []
      const [sent] = own === undefined ? [] : Object.values(own)
      if (sent !== undefined) return sent.input
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  it.each(entryPointVersions)(
    "deploys nothing through the SenderCreator of %s, and the bundle lands",
    async (version) => {
      const salt = `copied ${version}`
      const wallet = stack.predict(salt)
      await stack.fund(wallet, 10n ** 18n)
      const settings = { ...stack.settings, entryPoint: Address.unsafe(entryPoints[version]) }
      const thief = keyOf(8).connect(stack.provider)
      await stack.provider.send("evm_setAutomine", [false])
      const answer = stack.runtime.runFork(
        CreateWallets.run(stack.caller(), { accounts: [{ salt, walletCustody: 1 }], settings })
      )
      const input = await pendingCall(stack.signer.address)
      const [ops] = npmInterface(version, "EntryPoint").decodeFunctionData("handleOps", input)
      const { initCode } = ops[0]
      const fees = {
        maxFeePerGas: 400_000_000_000n,
        maxPriorityFeePerGas: 300_000_000_000n,
        gasLimit: 1_000_000n
      }
      const through = await thief.sendTransaction({
        to: senderCreators[version],
        data: creator.encodeFunctionData("createSender", [initCode]),
        ...fees
      })
      const directly = await thief.sendTransaction({
        to: stack.suite.factory,
        data: `0x${String(initCode).slice(42)}`,
        ...fees
      })
      await stack.provider.send("evm_mine", [])
      await stack.provider.send("evm_setAutomine", [true])
      const copies = await Promise.all(
        [through, directly].map(({ hash }) => stack.provider.getTransactionReceipt(hash))
      )
      expect(copies.map((copy) => copy?.index)).toEqual([0, 1])
      expect(copies.map((copy) => copy?.logs)).toEqual([[], []])
      const created = await Effect.runPromise(Fiber.join(answer))
      expect(created.status).toBe(1)
      const receipt = await stack.provider.getTransactionReceipt(created.txHash)
      expect(receipt).toMatchObject({ status: 1, index: 2, blockNumber: copies[0]?.blockNumber })
      expect(await stack.provider.getCode(wallet)).not.toBe("0x")
    }
  )
})

it("a creation for a remote bundler has an authorisation that names no submitter", async () => {
  const bundler = await startStandIn()
  const stack = await startStack({ profile: { remoteBundler: Redacted.make(bundler.url) } })
  try {
    bundler.attach(stack.provider, keyOf(9))
    await stack.create("remote")
    const factory = new Interface([
      "function createWallet(bytes32, uint256, bool, (uint8,uint8,address[],(bytes32,bytes32)[]), uint48, bytes authorization)"
    ])
    const [sent] = bundler.sent
    const { authorization } = factory.decodeFunctionData("createWallet", String(sent?.op.factoryData))
    expect(authorization).toMatch(/^0x[0-9a-f]{130}01$/)
    expect(await stack.provider.getCode(stack.predict("remote"))).not.toBe("0x")
  } finally {
    await stack.stop()
    await bundler.stop()
  }
})
