import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../faults/support/Build.js"
import * as Rig from "../../faults/support/Rig.js"
import * as World from "../../faults/support/World.js"
import { type FaultyNode, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { use } from "../../support/Use.js"

/** Reorganised blocks below settled depth: they revoke an early answer and keep the promise. */

const success = { status: 200, body: { status: 1 } }

const world = use(World.start)
let build: Build.Build
beforeAll(async () => {
  build = await Build.make()
})
afterAll(async () => {
  build.remove()
})

const using = async (
  options: Partial<Rig.Options<FaultyNode>>,
  test: (rig: Rig.Rig<FaultyNode>) => Promise<void>
) => {
  const rig = await Rig.start(world, build, { salts: ["a"], node: startFaultyNode, ...options })
  try {
    await test(rig)
  } finally {
    await rig.stop()
  }
}
const mine = async (blocks: number) => {
  for (let block = 0; block < blocks; block += 1) await world.send("evm_mine")
}
/** Two executions, each answered as done in a separate block. */
const answered = async (rig: Rig.Rig<FaultyNode>) => {
  await mine(4)
  const ids = [Rig.idOf(`${rig.signer.address} first`), Rig.idOf(`${rig.signer.address} second`)]
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
  await world.send("anvil_reorg", 2, [])
  expect(await rig.nonce()).toBe(before - 2)
}

describe("transactions that were answered as mined and that a reorg took back", () => {
  const settledDepth = 3

  it("land again", () =>
    using({ settledDepth }, async (rig) => {
      const { before, landed } = await answered(rig)
      await takenBack(rig, before)
      await landed()
    }))

  it("while the service was down, and are deep under new blocks, land again after its start", () =>
    using({ settledDepth, kills: [{ at: "clock", millis: 1 }] }, async (rig) => {
      const { before, landed } = await answered(rig)
      rig.supervisor.arm()
      await expect.poll(rig.supervisor.restarts, { interval: 5 }).toBe(1)
      await takenBack(rig, before)
      await mine(6)
      await landed()
    }))

  it("between two polls of the chain, and are deep under new blocks at the next one, land again", () =>
    using({ settledDepth }, async (rig) => {
      const { before, landed } = await answered(rig)
      // Until the new chain is longer than the old one by the settled depth, the node does not reply.
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
