import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { type Fault, type FaultyNode, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe("a node that simulates little", () => {
  let stack: Stack
  let node: FaultyNode
  let token: Address.Address
  beforeAll(async () => {
    stack = await startStack()
    node = await startFaultyNode(stack.anvil.url)
    token = Address.unsafe(await stack.token.getAddress())
    for (const wallet of await stack.create("simulated")) {
      await stack.mint(wallet, 1_000n)
      await stack.fund(wallet, 10n ** 19n)
    }
  })
  afterEach(() => node.behave())
  afterAll(async () => {
    await node.stop()
    await stack.stop()
  })

  const transfer: () => Operation = () => ({
    salt: "simulated",
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [dead, "1"]
  })
  const request = (count: number) => ({
    operations: Array.from({ length: count }, transfer),
    settings: { ...stack.settings, rpc: node.url }
  })
  const execute = (count: number) => ExecuteOperations.run(stack.caller(), request(count))
  const estimate = (count: number) => EstimateGas.run(stack.caller(), request(count))

  interface GasCall {
    gas: string
  }
  const isCall = (method: string) => method === "eth_call"

  /** Geth's `--rpc.gascap`: more is cut in silence. */
  const cutsAt =
    (most: number): Fault =>
    ({ method, params }, ask) => {
      const [call] = params as ReadonlyArray<GasCall>
      if (isCall(method) && Number(call?.gas) > most && call !== undefined)
        call.gas = `0x${most.toString(16)}`
      return ask()
    }

  it.each([
    [50_000_000, 40],
    [25_000_000, 30],
    [10_000_000, 1]
  ])("and cuts calls to %i gas measures %i operations at once, and they land", async (most, count) => {
    node.behave(cutsAt(most))
    const before = await stack.balanceOf(dead)
    expect(await stack.ask(execute(count))).toMatchObject({ status: 1 })
    expect((await stack.balanceOf(dead)) - before).toBe(BigInt(count))
  })

  it("estimates the same under a bound, within a twentieth", async () => {
    const free = await stack.ask(estimate(12))
    node.behave(cutsAt(25_000_000))
    const bounded = await stack.ask(estimate(12))
    expect(bounded).toMatchObject({ status: 1, error: null })
    expect(bounded.userOps).toHaveLength(12)
    expect(Math.abs(bounded.gas - free.gas)).toBeLessThan(free.gas / 20)
  })

  it("and cannot simulate all operations sends those that it could, and says of the others why", async () => {
    node.behave(cutsAt(6_500_000))
    const before = await stack.balanceOf(dead)
    const { returnData, status } = await stack.ask(execute(40))
    const elements = returnData.map((each, index) => each[index])
    const landed = elements.filter((each) => each?.success === true)
    expect(status).toBe(4)
    expect(landed.length).toBeGreaterThan(0)
    expect((await stack.balanceOf(dead)) - before).toBe(BigInt(landed.length))
    for (const each of elements)
      if (each?.success !== true) expect(each?.error).toMatch(/more gas than the node simulates at once/)
    const refused = await stack.ask(estimate(40))
    expect(refused.status).toBe(0)
    expect(refused.error).toMatch(/more gas than the node simulates at once: split the request/)
  })

  it.each([
    [-32000, "gas too high"],
    [-32000, "intrinsic gas exceeds the rpc gas cap"],
    [-32602, "gas limit exceeds maximum allowed"]
  ])(
    "and refuses a call with more than 50M gas (%i %s) is asked with less, and remembered",
    async (code, message) => {
      // A node of its own: what a node refuses is remembered with its URL.
      const reth = await startFaultyNode(stack.anvil.url)
      let refused = 0
      reth.behave(({ method, params }, ask) => {
        const [call] = params as ReadonlyArray<GasCall>
        if (!isCall(method) || Number(call?.gas ?? 0) <= 50_000_000) return ask()
        refused += 1
        return Promise.resolve(refusal(code, message))
      })
      try {
        for (let n = 0; n < 2; n += 1) {
          const { operations, settings } = request(1)
          const run = ExecuteOperations.run(stack.caller(), {
            operations,
            settings: { ...settings, rpc: reth.url }
          })
          expect((await stack.ask(run)).status).toBe(1)
        }
        expect(refused).toBe(1)
      } finally {
        await reth.stop()
      }
    }
  )

  it("and refuses every call for its gas is 422 with its own words", async () => {
    node.behave((question, ask) =>
      isCall(question.method) && question.params.length > 2
        ? Promise.resolve(refusal(-32000, "gas too high"))
        : ask()
    )
    expect(await stack.refused(execute(1))).toMatchObject({
      code: "node_refused",
      details: [{ message: expect.stringMatching(/answered: gas too high$/) }]
    })
  })
})
