import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { Interface } from "ethers"
import { expect, it } from "vitest"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { startStandIn } from "../../support/bundler/StandIn.js"
import { Address, keyOf, startStack, useStack } from "../../support/stack/Stack.js"
import { senderCreators } from "../../support/suite/Calls.js"
import { npmInterface } from "../lens/Abis.js"

const creator = new Interface(["function createSender(bytes initCode) returns (address)"])
const stack = useStack()

it.each(entryPointVersions)(
  "a creation's authorisation, copied out of a pending bundle, deploys nothing through the SenderCreator of %s, and the bundle lands",
  async (version) => {
    const salt = `copied ${version}`
    const wallet = stack.predict(salt)
    await stack.fund(wallet, 10n ** 18n)
    await stack.automine(false)
    const answer = stack.runtime.runFork(
      stack.createWallets([salt], { entryPoint: Address.unsafe(entryPoints[version]) })
    )
    const [pending] = await stack.pooled(1)
    const [ops] = npmInterface(version, "EntryPoint").decodeFunctionData("handleOps", pending?.input ?? "0x")
    const { initCode } = ops[0]
    const thief = keyOf(8).connect(stack.provider)
    const through = {
      to: senderCreators[version],
      data: creator.encodeFunctionData("createSender", [initCode])
    }
    const directly = { to: stack.suite.factory, data: `0x${String(initCode).slice(42)}` }
    const fees = {
      maxFeePerGas: 400n * 10n ** 9n,
      maxPriorityFeePerGas: 300n * 10n ** 9n,
      gasLimit: 1_000_000n
    }
    const sent = [
      await thief.sendTransaction({ ...through, ...fees }),
      await thief.sendTransaction({ ...directly, ...fees })
    ]
    await stack.mine()
    await stack.automine(true)
    const copies = await Promise.all(sent.map(({ hash }) => stack.provider.getTransactionReceipt(hash)))
    expect(copies.map((copy) => [copy?.index, copy?.logs])).toEqual([
      [0, []],
      [1, []]
    ])
    const created = await Effect.runPromise(Fiber.join(answer))
    expect(created.status).toBe(1)
    const receipt = await stack.provider.getTransactionReceipt(created.txHash)
    expect(receipt).toMatchObject({ status: 1, index: 2, blockNumber: copies[0]?.blockNumber })
    expect(await stack.provider.getCode(wallet)).not.toBe("0x")
  }
)

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
