import { AbiCoder, keccak256 } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../support/faults/Build.js"
import * as FaultProxy from "../../support/faults/FaultProxy.js"
import * as Random from "../../support/faults/Random.js"
import * as Rig from "../../support/faults/Rig.js"
import * as World from "../../support/faults/World.js"
import { type FaultyNode, startFaultyNode } from "../../support/stack/FaultyNode.js"

/** Bundles that other services lost, evicted, or tried for ever. */

let world: World.World
let build: Build.Build

beforeAll(async () => {
  build = await Build.make()
  world = await World.start()
})
afterAll(async () => {
  await world.stop()
  build.remove()
})

const using = async <Node extends { readonly url: string; readonly stop: () => Promise<void> }>(
  node: (target: string) => Promise<Node>,
  salts: ReadonlyArray<string>,
  test: (rig: Rig.Rig<Node>) => Promise<void>
) => {
  const rig = await Rig.start(world, build, { salts, node, receiptTimeoutMillis: 60_000 })
  try {
    await test(rig)
  } finally {
    await rig.stop()
  }
}

const success = { status: 200, body: { status: 1 } }

/** handleOps of EntryPoint v0.7. */
const handleOps = "0x765e827f"

const noData = { error: { code: 3, message: "execution reverted", data: "0x" } }

describe("an operation that reverts the bundle without being named", () => {
  /** rundler #1316, #1317, #939: innocent ones are evicted, or the bundler tries the same bundle for ever. */
  it("is found and reported; the nine with it land, in few attempts", async () => {
    const salts = Array.from({ length: 10 }, (_, n) => `w${n}`)
    await using(startFaultyNode, salts, async (rig: Rig.Rig<FaultyNode>) => {
      const ids = salts.map((salt) => Rig.idOf(`${rig.signer.address} ${salt}`))
      const poison = String(ids[6]).slice(2)
      let simulations = 0
      rig.node.behave(async ({ method, params }, ask) => {
        if (method !== "eth_call" && method !== "eth_simulateV1") return ask()
        const text = JSON.stringify(params)
        if (!text.includes(handleOps)) return ask()
        simulations += 1
        if (!text.includes(poison)) return ask()
        if (method === "eth_call") return noData
        const answer = await ask()
        if ("error" in answer) return answer
        const blocks = answer.result as ReadonlyArray<{ readonly calls: ReadonlyArray<object> }>
        return {
          result: blocks.map((block) => ({
            ...block,
            calls: block.calls.map((call) => ({
              ...call,
              status: "0x0",
              logs: [],
              returnData: "0x",
              error: { code: 3, message: "execution reverted", data: "0x" }
            }))
          }))
        }
      })
      const answer = await rig.execute("poisoned", ...salts.map((salt, n) => rig.hit(salt, ids[n] ?? "")))
      expect(answer).toMatchObject({ status: 200, body: { status: 4 } })
      const done = answer.body.returnData?.map((element, n) => element[n]?.success)
      expect(done).toEqual(ids.map((_, n) => n !== 6))
      expect(await Promise.all(ids.map(rig.count))).toEqual(ids.map((_, n) => (n === 6 ? 0 : 1)))
      expect(simulations).toBeLessThan(20)
    })
  })
})

describe("a bundle that reverts on the chain", () => {
  /** skandha #122: the receipt of such a bundle is null, and its operations are never heard of again. */
  it("has a result, with the receipt of its transaction; its wallet is free again", async () => {
    await using(startFaultyNode, ["a"], async (rig) => {
      const wallet = rig.wallets.get("a")
      const id = Rig.idOf(`${rig.signer.address} reverted`)
      await world.send("evm_setAutomine", false)
      const answer = rig.execute("reverted", rig.hit("a", id))
      await expect.poll(async () => (await rig.pending()).length, { timeout: 10_000 }).toBe(1)
      const [sent] = await rig.pending()
      const deposit = keccak256(AbiCoder.defaultAbiCoder().encode(["address", "uint256"], [wallet, 0]))
      await world.send("anvil_setBalance", wallet, "0x0")
      await world.send("anvil_setStorageAt", World.entryPoint, deposit, `0x${"00".repeat(32)}`)
      await world.send("evm_mine")
      await world.send("evm_setAutomine", true)
      const result = await answer
      expect(result).toMatchObject({ status: 200, body: { status: 0, txHash: sent?.hash } })
      expect(result.body.returnData?.[0]?.[0]?.success).toBe(false)
      expect(result.body.returnData?.[0]?.[0]?.error).toEqual(expect.stringMatching(/./))
      const receipt = await rig.insist("/receipt", null, {
        txHashes: [sent?.hash],
        rpc: rig.settings.rpc
      })
      expect(receipt.body).toMatchObject({ receipts: [{ status: 0, txHash: sent?.hash }] })
      expect(await rig.count(id)).toBe(0)
      await world.send("anvil_setBalance", wallet, "0x8ac7230489e80000")
      expect(await rig.execute("again", rig.hit("a", id))).toMatchObject(success)
      expect(await rig.count(id)).toBe(1)
    })
  })
})

describe("a node that refuses every second call with 429", () => {
  /** thirdweb engine, in a load test of RequestNetwork (PR #1606): 94 of 100 concurrent requests are lost. */
  it("costs none of 100 concurrent executions", async () => {
    const salts = Array.from({ length: 25 }, (_, n) => `w${n}`)
    await using(FaultProxy.start, salts, async (rig) => {
      const random = Random.make("every second call")
      let refused = 0
      let calls = 0
      rig.node.play(() => {
        calls += 1
        if (random.chance(0.5)) return null
        refused += 1
        return { kind: "429", burst: 1, retryAfter: null }
      })
      const ids = Array.from({ length: 100 }, (_, n) => Rig.idOf(`${rig.signer.address} ${n}`))
      const began = performance.now()
      const answers = await Promise.all(
        ids.map((id, n) => {
          const operations = [rig.hit(salts[n % salts.length] ?? "", id)]
          return rig.once("/execute", null, { operations, settings: rig.settings }, 90_000)
        })
      )
      const seconds = (performance.now() - began) / 1_000
      const succeeded = answers.filter((answer) => answer?.status === 200 && answer.body.status === 1).length
      console.log(
        `${succeeded} of 100 succeeded in ${seconds.toFixed(1)} s; ${refused} of ${calls} calls were refused with 429`
      )
      expect(answers.filter((answer) => answer?.status !== 200)).toEqual([])
      expect(succeeded).toBe(100)
      expect(await Promise.all(ids.map(rig.count))).toEqual(ids.map(() => 1))
      // Ops share what they ask, so that how many calls there are is no fact; that many of them were refused is.
      expect(refused).toBeGreaterThan(calls / 3)
    })
  }, 180_000)
})
