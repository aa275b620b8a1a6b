import * as Redacted from "effect/Redacted"
import { beforeAll, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { type Fault, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, useStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"

const dead = "0x000000000000000000000000000000000000dEaD"

/** Replies of nodes without the third parameter of `eth_call`; none of them supports `eth_simulateV1`. */
const plain =
  (isRefusing: boolean): Fault =>
  (question, ask) => {
    const { method, params } = question
    if (method === "eth_simulateV1") return Promise.resolve(refusal(-32601, "the method does not exist"))
    if (method !== "eth_call" || params.length <= 2) return ask()
    return isRefusing
      ? Promise.resolve(refusal(-32602, "too many arguments, want at most 2"))
      : ask({ ...question, params: params.slice(0, 2) })
  }

describe.each([
  ["refuses", true],
  ["ignores", false]
])("a node without state overrides, which %s the parameter", (name, isRefusing) => {
  const stack = useStack()
  const node = use(() => startFaultyNode(stack.anvil.url))
  beforeAll(async () => {
    node.behave(plain(isRefusing))
  })

  it.each([
    ["v0.6", false],
    ["v0.7", false],
    ["v0.7", true],
    ["v0.8", false]
  ] as const)("creates and executes on %s, sponsored: %s", (version, isSponsored) =>
    stack.living({ profile: { rpc: Redacted.make(node.url) } }, async (life) => {
      const salt = `${version} ${isSponsored}`
      const wallet = stack.predict(salt)
      const settings = {
        ...stack.settings,
        rpc: node.url,
        entryPoint: Address.unsafe(entryPoints[version]),
        ...(isSponsored && { paymaster: Address.unsafe(stack.suite.paymaster) })
      }
      const transfer = (amount: string) =>
        stack.transfer(salt, dead, amount, { funcSignature: "transfer(address,uint256) returns (bool)" })
      if (!isSponsored) await stack.fund(wallet, 10n ** 18n)
      expect(await life.runPromise(stack.createWallets([salt], settings))).toMatchObject({ status: 1 })
      await stack.mint(wallet, 1_000n)
      const before = await stack.balanceOf(dead)

      const operations = ["3", "2000", "4"].map(transfer)
      expect(await life.runPromise(stack.execute(operations, settings))).toMatchObject({
        status: 4,
        returnData: [
          { 0: { success: true, result: true } },
          { 1: { success: false, error: expect.stringContaining("ERC20InsufficientBalance") } },
          { 2: { success: true } }
        ]
      })
      const estimated = await life.runPromise(
        EstimateGas.run(stack.caller(), { operations: [transfer("5")], settings })
      )
      expect(estimated).toMatchObject({ status: 1, error: null })
      const posted = await life.runPromise(stack.post(estimated.userOps, null, settings))
      expect(posted).toMatchObject({ status: 1 })
      expect((await stack.balanceOf(dead)) - before).toBe(12n)
      if (isSponsored) expect(await stack.provider.getBalance(wallet)).toBe(0n)
    })
  )

  it("uses at most half more gas than with them", async () => {
    const [wallet = ""] = await stack.create(name)
    await stack.mint(wallet, 1_000n)
    const gasOf = async (rpc: string) => {
      const { gas, status } = await stack.estimate([stack.transfer(name, dead, "5")], { rpc })
      expect(status).toBe(1)
      return gas
    }
    const ratio = (await gasOf(node.url)) / (await gasOf(stack.anvil.url))
    expect(ratio).toBeGreaterThanOrEqual(1)
    expect(ratio).toBeLessThan(1.5)
  })
})
