import * as Either from "effect/Either"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import type { Fields } from "../../../src/application/ports/NetworkProfile.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { versionOf } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type Fault, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dead")
const gwei = 10n ** 9n

/** A stack whose requests go through a node that may lie. */
const start = async (profile: Fields, entryPoint: "v0.6" | "v0.7" = "v0.7") => {
  const stack = await startStack({ entryPoint, profile })
  const node = await startFaultyNode(stack.anvil.url)
  const token = Address.unsafe(await stack.token.getAddress())
  const [wallet = dead] = await stack.create("priced")
  await stack.mint(wallet, 1_000n)
  await stack.fund(wallet, 10n ** 20n)
  const settings = { ...stack.settings, rpc: node.url }
  const transfer: Operation = {
    salt: "priced",
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [dead, "1"]
  }
  return { stack, node, settings, operations: [transfer] }
}

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

describe.each(["v0.6", "v0.7"] as const)("a chain without EIP-1559, EntryPoint %s", (version) => {
  let { node, operations, settings, stack }: Awaited<ReturnType<typeof start>> = {} as never
  beforeAll(async () => {
    ;({ node, operations, settings, stack } = await start({}, version))
    node.behave(beforeLondon)
  })
  afterAll(async () => {
    await node.stop()
    await stack.stop()
  })

  it("gets legacy transactions at the overshot gas price, which the ops pay too", async () => {
    const price = BigInt(await stack.provider.send("eth_gasPrice", []))
    const before = await stack.balanceOf(dead)
    const result = await stack.ask(
      ExecuteOperations.run(stack.caller(), {
        operations,
        settings: { ...settings, percentTxGasPriceOvershoot: Either.getOrThrow(Percent.from(25)) }
      })
    )
    expect(result.status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(1n)
    const sent = await stack.provider.getTransaction(result.txHash)
    expect(sent?.type).toBe(0)
    expect(sent?.gasPrice).toBe((price * 125n + 99n) / 100n)
    expect(result.effectiveGasPrice).toBe(String(sent?.gasPrice))
    const { userOps } = await stack.ask(EstimateGas.run(stack.caller(), { operations, settings }))
    const op = Either.getOrThrow(
      UserOperation.decode(
        versionOf(settings.entryPoint) ?? version,
        Hex.unsafe(userOps[0]?.encodedUserOp ?? "")
      )
    )
    expect(op.maxPriorityFeePerGas).toBe(op.maxFeePerGas)
  })
})

describe("the operator's bounds on prices", () => {
  let { node, operations, settings, stack }: Awaited<ReturnType<typeof start>> = {} as never
  beforeAll(async () => {
    ;({ node, operations, settings, stack } = await start({
      minPriorityFeePerGas: 25n * gwei,
      caps: { maxFeePerGas: 60n * gwei, maxPriorityFeePerGas: 40n * gwei, transactionGas: 16_777_216n }
    }))
  })
  afterEach(() => node.behave())
  afterAll(async () => {
    await node.stop()
    await stack.stop()
  })

  const execute = (rpc = settings.rpc) =>
    ExecuteOperations.run(stack.caller(), { operations, settings: { ...settings, rpc } })
  const sentBy = async (txHash: string) => {
    const sent = await stack.provider.getTransaction(txHash)
    return { tip: sent?.maxPriorityFeePerGas ?? 0n, price: sent?.maxFeePerGas ?? 0n }
  }
  /** Every fee that the node tells, changed. */
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

  it("a tip below the least one is raised to it", async () => {
    const { status, txHash } = await stack.ask(execute())
    expect(status).toBe(1)
    expect((await sentBy(txHash)).tip).toBe(25n * gwei)
  })

  it("a tip above the cap is cut to it, even of a first transaction, and the price is never above its own", async () => {
    node.behave(lying(15n * gwei, 10n ** 30n))
    // By another URL, as one that has said nothing of tips yet.
    const { status, txHash } = await stack.ask(execute(`${node.url}/first`))
    expect(status).toBe(1)
    expect(await sentBy(txHash)).toEqual({ tip: 40n * gwei, price: 60n * gwei })
  })

  it.each([
    ["a base fee", lying(36n * gwei, gwei)],
    ["a base fee of 2^256 - 1", lying(2n ** 256n - 1n, gwei)]
  ])("%s above the cap is 422 fees_above_cap, and nothing is sent", async (_, fault) => {
    node.behave(fault)
    const nonce = await stack.provider.getTransactionCount(stack.signer.address)
    expect(await stack.refused(execute())).toMatchObject({ code: "fees_above_cap" })
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(nonce)
  })

  it("an op that was estimated before the base fee doubled lands at the new price", async () => {
    await stack.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${(10n * gwei).toString(16)}`])
    await stack.provider.send("evm_mine", [])
    const { userOps } = await stack.ask(EstimateGas.run(stack.caller(), { operations, settings }))
    await stack.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${(20n * gwei).toString(16)}`])
    await stack.provider.send("evm_mine", [])
    const [op] = userOps
    if (op === undefined) throw new Error("an op was expected")
    const before = await stack.balanceOf(dead)
    const { status, txHash } = await stack.ask(
      ExecuteEncoded.run(stack.caller(), {
        operations: [
          {
            encodedUserOp: Hex.unsafe(op.encodedUserOp),
            userOpHash: Hex.unsafe32(op.userOpHash),
            walletCustody: 1
          }
        ],
        settings
      })
    )
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
        await stack.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${(500n * gwei).toString(16)}`])
        await stack.provider.send("evm_mine", [])
      }
      return ask()
    })
    const result = stack.ask(execute())
    await expect.poll(() => sent, { timeout: 10_000 }).toBe(true)
    expect(await stack.balanceOf(dead)).toBe(before)
    await stack.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${gwei.toString(16)}`])
    await stack.provider.send("evm_mine", [])
    expect((await result).status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(1n)
  })
})
