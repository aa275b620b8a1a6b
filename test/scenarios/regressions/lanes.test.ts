import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../support/faults/Build.js"
import * as Rig from "../../support/faults/Rig.js"
import type { Kill } from "../../support/faults/Scenario.js"
import * as World from "../../support/faults/World.js"
import { type FaultyNode, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"

/** What stopped lanes of other services for hours, or for ever. */

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

const rigged = (kills: ReadonlyArray<Kill> = []) =>
  Rig.start(world, build, { salts: ["a", "b"], node: startFaultyNode, kills })

const using = async (rig: Rig.Rig<FaultyNode>, test: () => Promise<void>) => {
  try {
    await test()
  } finally {
    await rig.stop()
  }
}

/** Every nonce is used, and the lane takes the next work at once. */
const works = async (rig: Rig.Rig<FaultyNode>) => {
  const id = Rig.idOf(`${rig.signer.address} works`)
  const answer = await rig.execute("works", rig.hit("b", id))
  expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
  expect(await rig.count(id)).toBe(1)
  expect(await rig.pending()).toEqual([])
}

describe("a process that dies between the allocation of a nonce and its transaction's way out", () => {
  /** OpenZeppelin relayer #818, #843: the lane is jammed for days, and a restart does not help. */
  for (const [moment, step] of [
    ["after", "allocate"],
    ["before", "recordSigned"],
    ["after", "recordSigned"],
    ["after", "accept"]
  ] as const)
    it(`leaves a lane that works after the restart: killed ${moment} ${step}`, async () => {
      const rig = await rigged([{ at: "journal", step, moment, nth: 1, atLatest: null }])
      await using(rig, async () => {
        const id = Rig.idOf(`${rig.signer.address} jam`)
        const before = await rig.nonce()
        rig.supervisor.arm()
        const answer = await rig.execute("jam", rig.hit("a", id))
        expect(rig.supervisor.restarts()).toBe(1)
        expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
        expect(await rig.count(id)).toBe(1)
        expect(await rig.nonce()).toBe(before + 1)
        await works(rig)
      })
    })
})

describe("a node that says nonce too low", () => {
  /** OpenZeppelin relayer #681: `-32603 nonce too low` is taken as retriable, and the lane waits for itself. */
  it("under the code of an internal error, because somebody else was faster, holds nothing up", async () => {
    const rig = await rigged()
    await using(rig, async () => {
      let sends = 0
      rig.node.behave(async ({ method }, ask) => {
        if (method !== "eth_sendRawTransaction") return ask()
        sends += 1
        if (sends === 1) await rig.foreign(await rig.nonce())
        const answer = await ask()
        return "error" in answer ? refusal(-32603, "nonce too low") : answer
      })
      const id = Rig.idOf(`${rig.signer.address} low`)
      const before = await rig.nonce()
      const answer = await rig.execute("low", rig.hit("a", id))
      expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 2)
      await works(rig)
    })
  })

  it("of a transaction that it has mined does not make it go out under another nonce", async () => {
    const rig = await rigged()
    await using(rig, async () => {
      rig.node.behave(async ({ method }, ask) => {
        const answer = await ask()
        return method === "eth_sendRawTransaction" ? refusal(-32603, "nonce too low") : answer
      })
      const id = Rig.idOf(`${rig.signer.address} mined`)
      const before = await rig.nonce()
      const answer = await rig.execute("mined", rig.hit("a", id))
      expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
      rig.node.behave()
      await works(rig)
    })
  })
})

describe("a transaction that the node does not take", () => {
  /** rrelayer #113: a failed send strands its nonce. */
  it.each([
    "txpool is full",
    "transaction underpriced: tip needed 25000000000, tip permitted 1000000000",
    "replacement transaction underpriced",
    "the sequencer is having a moment"
  ])("because of %j goes out later under its own nonce", async (message) => {
    const rig = await rigged()
    await using(rig, async () => {
      let refused = 0
      rig.node.behave(async ({ method }, ask) => {
        if (method !== "eth_sendRawTransaction" || refused > 0) return ask()
        refused += 1
        return refusal(-32000, message)
      })
      const id = Rig.idOf(`${rig.signer.address} refused`)
      const before = await rig.nonce()
      const answer = await rig.execute("refused", rig.hit("a", id))
      expect(refused).toBe(1)
      expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
      await works(rig)
    })
  })
})

describe("a key that somebody else uses as well", () => {
  /** ithaca relay #329: the nonce is never compared with the chain again. */
  it("for the very nonce of a pending transaction moves its work on to the next one", async () => {
    const rig = await rigged()
    await using(rig, async () => {
      const id = Rig.idOf(`${rig.signer.address} raced`)
      const before = await rig.nonce()
      await world.send("evm_setAutomine", false)
      const answer = rig.execute("raced", rig.hit("a", id))
      await expect.poll(async () => (await rig.pending()).length, { timeout: 10_000 }).toBe(1)
      const [own] = await rig.pending()
      await rig.foreign(before)
      await world.send("evm_mine")
      await world.send("evm_setAutomine", true)
      expect(await rig.nonce()).toBe(before + 1)
      expect(await world.send("eth_getTransactionReceipt", own?.hash)).toBe(null)
      expect(await answer).toMatchObject({ status: 200, body: { status: 1 } })
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 2)
      await works(rig)
    })
  })

  /** daimo #1246: the local nonce drifts from the chain's for 40 minutes. */
  it("between two requests, several times, is noticed by the second", async () => {
    const rig = await rigged()
    await using(rig, async () => {
      await works(rig)
      for (let n = 0; n < 3; n += 1) await rig.foreign(await rig.nonce())
      const id = Rig.idOf(`${rig.signer.address} drift`)
      const before = await rig.nonce()
      expect(await rig.execute("drift", rig.hit("a", id))).toMatchObject({ status: 200, body: { status: 1 } })
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
    })
  })

  /** daimo #1246 from the other side: the chain is behind, because the node has lost a transaction. */
  it("or not: a transaction that the node has lost is given to it again", async () => {
    const rig = await rigged()
    await using(rig, async () => {
      const id = Rig.idOf(`${rig.signer.address} lost`)
      const before = await rig.nonce()
      await world.send("evm_setAutomine", false)
      const answer = rig.execute("lost", rig.hit("a", id))
      await expect.poll(async () => (await rig.pending()).length, { timeout: 10_000 }).toBe(1)
      await world.send("anvil_removePoolTransactions", rig.signer.address)
      await world.send("evm_mine")
      await world.send("evm_setAutomine", true)
      expect(await answer).toMatchObject({ status: 200, body: { status: 1 } })
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
      await works(rig)
    })
  })
})
