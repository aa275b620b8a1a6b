import { afterEach, describe, expect, it } from "vitest"
import { type Fault, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { errorsOf, useStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"

const dead = "0x000000000000000000000000000000000000dEaD"

describe("a node that simulates little", () => {
  const stack = useStack({}, async (stack) => {
    for (const wallet of await stack.create("simulated")) {
      await stack.mint(wallet, 1_000n)
      await stack.fund(wallet, 10n ** 19n)
    }
  })
  const node = use(() => startFaultyNode(stack.anvil.url))
  afterEach(() => node.behave())

  const transfers = (count: number) => Array.from({ length: count }, () => stack.transfer("simulated", dead))
  const execute = (count: number, rpc = node.url) => stack.execute(transfers(count), { rpc })
  const estimate = (count: number) => stack.estimate(transfers(count), { rpc: node.url })
  const gasOf = (params: ReadonlyArray<unknown>) => params[0] as { gas: string }

  /** Geth's `--rpc.gascap`: more is cut in silence. */
  const cutsAt =
    (most: number): Fault =>
    ({ method, params }, ask) => {
      if (method === "eth_call" && Number(gasOf(params).gas) > most)
        gasOf(params).gas = `0x${most.toString(16)}`
      return ask()
    }

  it.each([
    [50_000_000, 40],
    [25_000_000, 30],
    [10_000_000, 1]
  ])("with a gas cap of %i per call measures %i operations together, and they land", async (most, count) => {
    node.behave(cutsAt(most))
    const before = await stack.balanceOf(dead)
    expect(await stack.ask(execute(count))).toMatchObject({ status: 1 })
    expect((await stack.balanceOf(dead)) - before).toBe(BigInt(count))
  })

  it("estimates the same under a bound, within a twentieth", async () => {
    const free = await estimate(12)
    node.behave(cutsAt(25_000_000))
    const bounded = await estimate(12)
    expect(bounded).toMatchObject({ status: 1, error: null })
    expect(bounded.userOps).toHaveLength(12)
    expect(Math.abs(bounded.gas - free.gas)).toBeLessThan(free.gas / 20)
  })

  it("with room for only some operations sends the simulated ones, and gives the reason for the others", async () => {
    node.behave(cutsAt(6_500_000))
    const before = await stack.balanceOf(dead)
    const result = await stack.ask(execute(40))
    const errors = errorsOf(result)
    const landed = errors.filter((error) => error === null)
    expect(result.status).toBe(4)
    expect(landed.length).toBeGreaterThan(0)
    expect((await stack.balanceOf(dead)) - before).toBe(BigInt(landed.length))
    for (const error of errors)
      if (error !== null) expect(error).toMatch(/more gas than the node simulates in one call/)
    expect(await estimate(40)).toMatchObject({
      status: 0,
      error: expect.stringMatching(/more gas than the node simulates in one call: split the request/)
    })
  })

  it.each([
    [-32000, "gas too high"],
    [-32000, "intrinsic gas exceeds the rpc gas cap"],
    [-32602, "gas limit exceeds maximum allowed"]
  ])(
    "with a refusal of calls above 50M gas (%i %s) gets smaller ones, and is remembered",
    async (code, message) => {
      // A separate node: the service remembers a node's refusals by its URL.
      const reth = await startFaultyNode(stack.anvil.url)
      let refused = 0
      reth.behave(({ method, params }, ask) => {
        if (method !== "eth_call" || Number(gasOf(params).gas ?? 0) <= 50_000_000) return ask()
        refused += 1
        return Promise.resolve(refusal(code, message))
      })
      try {
        for (let n = 0; n < 2; n += 1) expect((await stack.ask(execute(1, reth.url))).status).toBe(1)
        expect(refused).toBe(1)
      } finally {
        await reth.stop()
      }
    }
  )

  it("with a refusal of every call for its gas is 422 with its own words", async () => {
    node.behave(({ method, params }, ask) =>
      method === "eth_call" && params.length > 2 ? Promise.resolve(refusal(-32000, "gas too high")) : ask()
    )
    expect(await stack.refused(execute(1))).toMatchObject({
      code: "node_refused",
      details: [{ message: expect.stringMatching(/answered: gas too high$/) }]
    })
  })
})
