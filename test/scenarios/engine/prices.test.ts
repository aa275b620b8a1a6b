import * as Result from "effect/Result"
import { afterEach, describe, expect, it } from "vitest"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type Fault, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { useStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"

const dead = "0x000000000000000000000000000000000000dEaD"
const gwei = 10n ** 9n

const stack = useStack(
  {
    profile: {
      minPriorityFeePerGas: 25n * gwei,
      caps: { maxFeePerGas: 60n * gwei, maxPriorityFeePerGas: 40n * gwei, transactionGas: 16_777_216n }
    }
  },
  async (stack) => {
    const [wallet = dead] = await stack.create("priced")
    await stack.mint(wallet, 1_000n)
    await stack.fund(wallet, 10n ** 20n)
  }
)
const node = use(() => startFaultyNode(stack.anvil.url))
afterEach(() => node.behave())

const transfer = () => [stack.transfer("priced", dead)]
const execute = (rpc = node.url, settings = {}) => stack.execute(transfer(), { rpc, ...settings })
const sentBy = async (txHash: string) => {
  const sent = await stack.provider.getTransaction(txHash)
  return { tip: sent?.maxPriorityFeePerGas ?? 0n, price: sent?.maxFeePerGas ?? 0n }
}

const wide = { maxFeePerGas: 500n * gwei, maxPriorityFeePerGas: 100n * gwei, transactionGas: 16_777_216n }

/** As nodes of a chain before London answer: no base fee in a block, one of zero in the fee history. */
const beforeLondon: Fault = async ({ method }, ask) => {
  const answer = await ask()
  if (!("result" in answer) || answer.result === null) return answer
  if (method === "eth_getBlockByNumber") {
    const { baseFeePerGas: _, ...block } = answer.result as Record<string, unknown>
    return { result: block }
  }
  if (method !== "eth_feeHistory") return answer
  const history = answer.result as { readonly baseFeePerGas: ReadonlyArray<string> }
  return { result: { ...history, baseFeePerGas: history.baseFeePerGas.map(() => "0x0") } }
}

describe("the operator's bounds on prices", () => {
  /** Changes every fee that the node reports. */
  const lying =
    (baseFee: bigint, tip: bigint): Fault =>
    async ({ method }, ask) => {
      if (method === "eth_maxPriorityFeePerGas") return { result: `0x${tip.toString(16)}` }
      if (method !== "eth_feeHistory") return ask()
      const fee = `0x${baseFee.toString(16)}`
      return {
        result: { oldestBlock: "0x1", baseFeePerGas: [fee, fee], gasUsedRatio: [0], reward: [["0x0"]] }
      }
    }

  it("a tip below the minimum is raised to it", async () => {
    const { status, txHash } = await stack.ask(execute())
    expect(status).toBe(1)
    expect((await sentBy(txHash)).tip).toBe(25n * gwei)
  })

  it("a tip above the cap is cut to it, even of a first transaction, and the price is never above its own", async () => {
    node.behave(lying(15n * gwei, 10n ** 30n))
    // By another URL: a node that has not reported tips yet.
    const { status, txHash } = await stack.ask(execute(`${node.url}/first`))
    expect(status).toBe(1)
    expect(await sentBy(txHash)).toEqual({ tip: 40n * gwei, price: 60n * gwei })
  })

  it.each([36n * gwei, 2n ** 256n - 1n])(
    "a base fee of %i above the cap is 422 fees_above_cap, without a transaction or an estimate",
    async (baseFee) => {
      node.behave(lying(baseFee, gwei))
      const nonce = await stack.nonce()
      expect(await stack.refused(execute())).toMatchObject({ _tag: "Unprocessable", code: "fees_above_cap" })
      expect(await stack.estimate(transfer(), { rpc: node.url })).toMatchObject({ status: 0, userOps: [] })
      expect(await stack.nonce()).toBe(nonce)
    }
  )

  it("an op estimated before the base fee doubled lands at the new price", async () => {
    await stack.baseFee(10n * gwei)
    const { userOps } = await stack.estimate(transfer(), { rpc: node.url })
    await stack.baseFee(20n * gwei)
    const before = await stack.balanceOf(dead)
    const { status, txHash } = await stack.ask(stack.post(userOps, null, { rpc: node.url }))
    expect(status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(1n)
    expect((await sentBy(txHash)).price).toBeGreaterThan(42n * gwei)
  })

  it("a base fee that spikes between estimate and sending delays the transaction, and it lands once", async () => {
    const before = await stack.balanceOf(dead)
    let sent = false
    node.behave(async ({ method }, ask) => {
      if (method === "eth_sendRawTransaction" && !sent) {
        sent = true
        await stack.baseFee(500n * gwei)
      }
      return ask()
    })
    const result = stack.ask(execute())
    await expect.poll(() => sent, { timeout: 10_000 }).toBe(true)
    expect(await stack.balanceOf(dead)).toBe(before)
    await stack.baseFee(gwei)
    expect((await result).status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(1n)
  })
})

it("a chain without EIP-1559 gets legacy transactions at the overshot gas price, which the ops pay too", () =>
  // With no operator bound in the way.
  stack.living({ profile: { minPriorityFeePerGas: 0n, caps: wide } }, async (life) => {
    const legacy = await startFaultyNode(stack.anvil.url)
    legacy.behave(beforeLondon)
    const price = BigInt(await stack.provider.send("eth_gasPrice", []))
    const overshoot = { percentTxGasPriceOvershoot: Result.getOrThrow(Percent.from(25)) }
    const result = await life.runPromise(execute(legacy.url, overshoot))
    const sent = await stack.provider.getTransaction(result.txHash)
    expect([result.status, sent?.type, sent?.gasPrice]).toEqual([1, 0, (price * 125n + 99n) / 100n])
    expect(result.effectiveGasPrice).toBe(String(sent?.gasPrice))
    const { userOps } = await stack.estimate(transfer(), { rpc: legacy.url })
    const op = Result.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(userOps[0]?.encodedUserOp ?? "")))
    expect(op.maxPriorityFeePerGas).toBe(op.maxFeePerGas)
    await legacy.stop()
  }))
