import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../support/faults/Build.js"
import * as Rig from "../../support/faults/Rig.js"
import * as World from "../../support/faults/World.js"
import { type FaultyNode, startFaultyNode } from "../../support/stack/FaultyNode.js"

/** What went wrong in other services when a transaction had to be replaced. */

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

const using = async (test: (rig: Rig.Rig<FaultyNode>) => Promise<void>) => {
  const rig = await Rig.start(world, build, { salts: ["a", "b"], node: startFaultyNode })
  try {
    await test(rig)
  } finally {
    await rig.stop()
    await world.send("anvil_dropAllTransactions")
    await world.send("anvil_setNextBlockBaseFeePerGas", "0x3b9aca00")
    await world.send("evm_mine")
  }
}

const success = { status: 200, body: { status: 1 } }

/** An execution whose transaction is in the pool and will not be mined. */
const stuck = async (rig: Rig.Rig<FaultyNode>, id: string) => {
  await world.send("evm_setAutomine", false)
  const answer = rig.execute(id, rig.hit("a", id))
  // Awaited later, or never when the test fails before.
  answer.catch(() => undefined)
  await expect.poll(async () => (await rig.pending()).length, { timeout: 10_000 }).toBe(1)
  const [original] = await rig.pending()
  if (original === undefined) throw new Error("a pending transaction was expected")
  return { answer, original }
}

const unstuck = (rig: Rig.Rig<FaultyNode>, key: string) => {
  const { rpc, signer } = rig.settings
  return rig.once("/unstuck", key, { settings: { rpc, signer } })
}

describe("the replacement of a stuck transaction", () => {
  /** rundler #221, #550: only one fee field is raised, and the replacement is underpriced for ever. */
  it("raises both fee fields by a tenth at least, every time, and the last one is the result", async () => {
    await using(async (rig) => {
      const id = Rig.idOf(`${rig.signer.address} raised`)
      const before = await rig.nonce()
      const { answer, original } = await stuck(rig, id)
      const versions = [original]
      const replacing: Array<Promise<unknown>> = []
      for (let n = 0; n < 4; n += 1) {
        replacing.push(unstuck(rig, `raise ${n}`))
        const last = versions.at(-1)?.hash
        await expect.poll(async () => (await rig.pending())[0]?.hash, { timeout: 10_000 }).not.toBe(last)
        const [next] = await rig.pending()
        if (next !== undefined) versions.push(next)
      }
      for (const [n, version] of versions.slice(1).entries()) {
        const previous = versions[n]
        expect(version.nonce).toBe(original.nonce)
        for (const field of ["maxFeePerGas", "maxPriorityFeePerGas"] as const)
          expect(BigInt(version[field]) * 10n).toBeGreaterThanOrEqual(BigInt(previous?.[field] ?? 0) * 11n)
      }
      await world.send("evm_mine")
      await world.send("evm_setAutomine", true)
      expect(await answer).toMatchObject({ ...success, body: { txHash: versions.at(-1)?.hash } })
      await Promise.all(replacing)
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
    })
  })

  /** alto #747: the original is mined while its replacement is prepared, and the bundle goes out again. */
  it("that comes too late sends nothing more: the original is the result", async () => {
    await using(async (rig) => {
      const id = Rig.idOf(`${rig.signer.address} late`)
      const before = await rig.nonce()
      const { answer, original } = await stuck(rig, id)
      let tried = 0
      rig.node.behave(async ({ method }, ask) => {
        if (method === "eth_sendRawTransaction" && tried === 0) {
          tried += 1
          await world.send("evm_mine")
          await world.send("evm_setAutomine", true)
        }
        return ask()
      })
      await unstuck(rig, "late")
      expect(tried).toBe(1)
      expect(await answer).toMatchObject({ ...success, body: { txHash: original.hash } })
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
      const next = Rig.idOf(`${rig.signer.address} next`)
      expect(await rig.execute("next", rig.hit("b", next))).toMatchObject(success)
      expect(await rig.nonce()).toBe(before + 2)
    })
  })

  it("is not needed by hand: a transaction that the fees have left behind is replaced by itself", async () => {
    await using(async (rig) => {
      const id = Rig.idOf(`${rig.signer.address} priced out`)
      const before = await rig.nonce()
      const { answer, original } = await stuck(rig, id)
      const fee = `0x${(BigInt(original.maxFeePerGas) * 2n).toString(16)}`
      const mined = async () => {
        await world.send("anvil_setNextBlockBaseFeePerGas", fee)
        await world.send("evm_mine")
        return rig.nonce()
      }
      await expect.poll(mined, { timeout: 40_000, interval: 200 }).toBe(before + 1)
      await world.send("evm_setAutomine", true)
      const result = await answer
      expect(result).toMatchObject(success)
      expect(result.body.txHash).not.toBe(original.hash)
      expect(await rig.count(id)).toBe(1)
    })
  })
})
