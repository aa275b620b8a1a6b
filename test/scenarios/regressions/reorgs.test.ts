import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../support/faults/Build.js"
import * as Rig from "../../support/faults/Rig.js"
import type { Kill } from "../../support/faults/Scenario.js"
import * as World from "../../support/faults/World.js"
import { type FaultyNode, startFaultyNode } from "../../support/stack/FaultyNode.js"

/** Blocks that are taken back before what they hold is settled. */

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

const using = async (kills: ReadonlyArray<Kill>, test: (rig: Rig.Rig<FaultyNode>) => Promise<void>) => {
  const rig = await Rig.start(world, build, { salts: ["a"], node: startFaultyNode, settledDepth: 3, kills })
  for (let block = 0; block < 4; block += 1) await world.send("evm_mine")
  try {
    await test(rig)
  } finally {
    await rig.stop()
  }
}

/** Three executions, one after the other, each answered as done in a block of its own. */
const answered = async (rig: Rig.Rig<FaultyNode>, count: number) => {
  const ids = Array.from({ length: count }, (_, n) => Rig.idOf(`${rig.signer.address} ${n}`))
  for (const [n, id] of ids.entries())
    expect(await rig.execute(`taken back ${n}`, rig.hit("a", id))).toMatchObject({
      status: 200,
      body: { status: 1 }
    })
  return ids
}

const landed = async (rig: Rig.Rig<FaultyNode>, ids: ReadonlyArray<string>) => {
  await expect
    .poll(() => Promise.all(ids.map(rig.count)), { timeout: 30_000, interval: 200 })
    .toEqual(ids.map(() => 1))
}

/** What an early answer said is undone by the chain; the promise is not. */
describe("transactions that were answered as mined and that a reorg took back", () => {
  for (const depth of [1, 2])
    it(`land again: ${depth} of the latest blocks`, async () => {
      await using([], async (rig) => {
        const ids = await answered(rig, depth)
        const before = await rig.nonce()
        await world.send("anvil_reorg", depth, [])
        expect(await rig.nonce()).toBe(before - depth)
        await landed(rig, ids)
        expect(await rig.nonce()).toBe(before)
      })
    })

  it("while the service was down, and deep under new blocks by now, land again after its start", async () => {
    await using([{ at: "clock", millis: 1 }], async (rig) => {
      const ids = await answered(rig, 2)
      const before = await rig.nonce()
      rig.supervisor.arm()
      await expect.poll(rig.supervisor.restarts, { interval: 5 }).toBe(1)
      await world.send("anvil_reorg", 2, [])
      for (let block = 0; block < 6; block += 1) await world.send("evm_mine")
      expect(await rig.nonce()).toBe(before - 2)
      await landed(rig, ids)
      expect(await rig.nonce()).toBe(before)
    })
  })

  it("between two looks at the chain, deep under new blocks at the next one, land again", async () => {
    await using([], async (rig) => {
      const ids = await answered(rig, 2)
      const before = await rig.nonce()
      // Until the new chain is longer than the old one by the settled depth the node answers nothing.
      let release = () => {}
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      rig.node.behave(async (_, ask) => {
        await held
        return ask()
      })
      await world.send("anvil_reorg", 2, [])
      for (let block = 0; block < 6; block += 1) await world.send("evm_mine")
      rig.node.behave()
      release()
      await landed(rig, ids)
      expect(await rig.nonce()).toBe(before)
    })
  })
})
