import * as Result from "effect/Result"
import { expect, it } from "vitest"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import { startStack, useStack } from "../../support/stack/Stack.js"

const dead = "0x000000000000000000000000000000000000dEaD"
const stack = useStack({}, async (stack) => {
  for (const wallet of await stack.create("buffered")) await stack.mint(wallet, 100n)
})

it.each([
  ["none at all", Percent.zero],
  ["eleven times as much", Result.getOrThrow(Percent.from(1_000))]
])("with buffers of %s operations go, single, together, and via an estimate", async (_, percent) => {
  const settings = {
    percentUserOpGasOvershoot: percent,
    percentTxGasOvershoot: percent,
    percentTxGasPriceOvershoot: percent
  }
  const operation = stack.transfer("buffered", dead)
  for (const operations of [[operation], [operation, operation, operation]])
    expect((await stack.ask(stack.execute(operations, settings))).status).toBe(1)
  const { userOps } = await stack.estimate([operation, operation], settings)
  expect((await stack.ask(stack.post(userOps, null, settings))).status).toBe(1)
})

it("a chain with blocks of a second, settled two blocks deep, carries ten concurrent requests in nonce order", async () => {
  const stack = await startStack({ profile: { confirmations: 2, settledDepth: 2 } })
  try {
    const wallet = stack.predict("slow")
    await stack.fund(wallet, 10n ** 18n)
    await stack.provider.send("evm_setIntervalMining", [1])
    expect((await stack.ask(stack.createWallets(["slow"]))).status).toBe(1)
    await stack.mint(wallet, 100n)
    const results = await Promise.all(
      Array.from({ length: 10 }, () => stack.ask(stack.execute([stack.transfer("slow", dead)])))
    )
    expect(results.map(({ status }) => status)).toEqual(results.map(() => 1))
    expect(await stack.balanceOf(dead)).toBe(10n)
  } finally {
    await stack.stop()
  }
})
