import { describe, expect, it } from "vitest"
import type * as Rig from "../../faults/support/Rig.js"
import type { FaultyNode } from "../../support/stack/FaultyNode.js"
import { idOf, success, useRigs } from "./support.js"

/** Blocks that are taken back before what they hold is settled: what an early answer said is undone; the promise is not. */

const rigs = useRigs()
const mine = async (blocks: number) => {
  for (let block = 0; block < blocks; block += 1) await rigs.send("evm_mine")
}
/** Two executions, each answered as done in a block of its own. */
const answered = async (rig: Rig.Rig<FaultyNode>) => {
  await mine(4)
  const ids = [idOf(rig, "first"), idOf(rig, "second")]
  for (const id of ids) expect(await rig.execute(id, rig.hit("a", id))).toMatchObject(success)
  const before = await rig.nonce()
  return {
    before,
    landed: async () => {
      const counts = () => Promise.all(ids.map(rig.count))
      await expect.poll(counts, { timeout: 30_000, interval: 200 }).toEqual([1, 1])
      expect(await rig.nonce()).toBe(before)
    }
  }
}
const takenBack = async (rig: Rig.Rig<FaultyNode>, before: number) => {
  await rigs.send("anvil_reorg", 2, [])
  expect(await rig.nonce()).toBe(before - 2)
}

describe("transactions that were answered as mined and that a reorg took back", () => {
  const settledDepth = 3

  it("land again", () =>
    rigs.using({ settledDepth }, async (rig) => {
      const { before, landed } = await answered(rig)
      await takenBack(rig, before)
      await landed()
    }))

  it("while the service was down, and deep under new blocks by now, land again after its start", () =>
    rigs.using({ settledDepth, kills: [{ at: "clock", millis: 1 }] }, async (rig) => {
      const { before, landed } = await answered(rig)
      rig.supervisor.arm()
      await expect.poll(rig.supervisor.restarts, { interval: 5 }).toBe(1)
      await takenBack(rig, before)
      await mine(6)
      await landed()
    }))

  it("between two looks at the chain, deep under new blocks at the next one, land again", () =>
    rigs.using({ settledDepth }, async (rig) => {
      const { before, landed } = await answered(rig)
      // Until the new chain is longer than the old one by the settled depth the node answers nothing.
      let release = () => {}
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      rig.node.behave((_, ask) => held.then(() => ask()))
      await takenBack(rig, before)
      await mine(6)
      rig.node.behave()
      release()
      await landed()
    }))
})
