import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { type Fault, type FaultyNode, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

/** What nodes without the third parameter of `eth_call` do about it; none of them knows `eth_simulateV1`. */
const nodes: ReadonlyArray<readonly [name: string, Fault]> = [
  [
    "refuses the parameter",
    (question, ask) => {
      if (question.method === "eth_simulateV1")
        return Promise.resolve({ error: { code: -32601, message: "the method does not exist" } })
      return question.method === "eth_call" && question.params.length > 2
        ? Promise.resolve({ error: { code: -32602, message: "too many arguments, want at most 2" } })
        : ask()
    }
  ],
  [
    "ignores the parameter",
    (question, ask) => {
      if (question.method === "eth_simulateV1")
        return Promise.resolve({ error: { code: -32601, message: "the method does not exist" } })
      return question.method === "eth_call"
        ? ask({ ...question, params: question.params.slice(0, 2) })
        : ask()
    }
  ]
]

describe.each(nodes)("a node without state overrides, which %s", (name, behaviour) => {
  let stack: Stack
  let node: FaultyNode
  let token: Address.Address
  beforeAll(async () => {
    stack = await startStack()
    node = await startFaultyNode(stack.anvil.url)
    node.behave(behaviour)
    token = Address.unsafe(await stack.token.getAddress())
  })
  afterAll(async () => {
    await node.stop()
    await stack.stop()
  })

  const settings = (version: keyof typeof entryPoints) => ({
    ...stack.settings,
    rpc: node.url,
    entryPoint: Address.unsafe(entryPoints[version])
  })
  const transfer = (salt: string, amount: string): Operation => ({
    salt,
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256) returns (bool)",
    funcParams: [dead, amount]
  })

  it.each(["v0.6", "v0.7", "v0.8"] as const)(
    "creates and executes for wallets without a coin with a sponsor, on %s",
    async (version) => {
      const life = stack.begin({ profile: { rpc: Redacted.make(node.url) } })
      try {
        const salt = `sponsored, ${name} ${version}`
        const paymaster = Address.unsafe(stack.suite.paymaster)
        await life.runPromise(
          CreateWallets.run(stack.caller(), {
            accounts: [{ salt, walletCustody: 1 }],
            settings: { ...settings(version), paymaster }
          })
        )
        await stack.mint(stack.predict(salt), 10n)
        const executed = await life.runPromise(
          ExecuteOperations.run(stack.caller(), {
            operations: [transfer(salt, "3")],
            settings: { ...settings(version), paymaster }
          })
        )
        expect(executed).toMatchObject({ status: 1 })
        expect(await stack.provider.getBalance(stack.predict(salt))).toBe(0n)
      } finally {
        await life.dispose()
      }
    }
  )

  it.each(["v0.6", "v0.7", "v0.8"] as const)("creates and executes on %s", async (version) => {
    const life = stack.begin({ profile: { rpc: Redacted.make(node.url) } })
    try {
      const salt = `${name} ${version}`
      const wallet = stack.predict(salt)
      await stack.fund(wallet, 10n ** 18n)
      const created = await life.runPromise(
        CreateWallets.run(stack.caller(), {
          accounts: [{ salt, walletCustody: 1 }],
          settings: settings(version)
        })
      )
      expect(created).toMatchObject({ status: 1 })
      await stack.mint(wallet, 1_000n)
      const before = await stack.balanceOf(dead)

      const executed = await life.runPromise(
        ExecuteOperations.run(stack.caller(), {
          operations: [transfer(salt, "3"), transfer(salt, "2000"), transfer(salt, "4")],
          settings: settings(version)
        })
      )
      expect(executed).toMatchObject({
        status: 4,
        returnData: [
          { 0: { success: true, result: true } },
          { 1: { success: false, error: expect.stringContaining("ERC20InsufficientBalance") } },
          { 2: { success: true } }
        ]
      })

      const estimated = await life.runPromise(
        EstimateGas.run(stack.caller(), {
          operations: [transfer(salt, "5")],
          settings: settings(version)
        })
      )
      expect(estimated).toMatchObject({ status: 1, error: null })
      const [op] = estimated.userOps
      if (op === undefined) throw new Error("nothing was estimated")
      const encoded = await life.runPromise(
        ExecuteEncoded.run(stack.caller(), {
          operations: [
            {
              encodedUserOp: op.encodedUserOp as never,
              userOpHash: op.userOpHash as never,
              walletCustody: 1
            }
          ],
          settings: settings(version)
        })
      )
      expect(encoded).toMatchObject({ status: 1 })
      expect((await stack.balanceOf(dead)) - before).toBe(12n)
    } finally {
      await life.dispose()
    }
  })

  it("asks for at most half more gas than with them", async () => {
    const [wallet] = await stack.create(`${name} compared`)
    await stack.mint(wallet ?? "", 1_000n)
    const gasOf = async (rpc: string) => {
      const { gas, status } = await stack.ask(
        EstimateGas.run(stack.caller(), {
          operations: [transfer(`${name} compared`, "5")],
          settings: { ...settings("v0.7"), rpc }
        })
      )
      expect(status).toBe(1)
      return gas
    }
    const [plain, measured] = [await gasOf(node.url), await gasOf(stack.anvil.url)]
    expect(plain / measured).toBeGreaterThanOrEqual(1)
    expect(plain / measured).toBeLessThan(1.5)
  })
})
