import { AbiCoder, keccak256 } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../support/faults/Build.js"
import * as Fault from "../support/faults/Fault.js"
import type { Scenario } from "../support/faults/Scenario.js"
import * as Seed from "../support/faults/Seed.js"
import * as World from "../support/faults/World.js"

/** Three executions in calm weather: nothing can go wrong but what the test breaks. */
const scenario: Scenario = {
  seed: 0,
  signers: 1,
  wallets: 1,
  mining: { mode: "automine" },
  confirmations: 1,
  settledDepth: 1,
  bumpAfterMillis: 30_000,
  receiptTimeoutMillis: 20_000,
  requests: (["hit", "hit", "hitAndRevert"] as const).map((deed) => ({
    at: 0,
    endpoint: "execute",
    signer: 0,
    ops: [{ wallet: 0, deed }],
    patience: 20_000,
    twin: false
  })),
  script: Fault.none,
  kills: [],
  events: [],
  stormMillis: 0
}

describe("a judgement", () => {
  let world: World.World
  let build: Build.Build
  beforeAll(async () => {
    build = Build.make()
    world = await World.start()
  })
  afterAll(async () => {
    await world.stop()
    build.remove()
  })

  it("finds what was lost, doubled and misreported, and nothing else", async () => {
    const ids: Array<string> = []
    const { verdict, works } = await Seed.run(world, build, scenario, async (works) => {
      ids.push(...works.map(({ id }) => id))
      const [lost, doubled, failed] = ids
      const slot = keccak256(AbiCoder.defaultAbiCoder().encode(["bytes32", "uint256"], [lost, 0]))
      await world.send("anvil_setStorageAt", await world.counter.getAddress(), slot, `0x${"00".repeat(32)}`)
      for (const id of [doubled, failed]) await (await world.counter.getFunction("hit")(id)).wait()
    })
    expect(works).toEqual({ success: 2, failure: 1, nothing: 0 })
    expect(verdict).toEqual({
      lost: [expect.stringContaining(ids[0] ?? "")],
      duplicated: [expect.stringContaining(ids[1] ?? "")],
      misreported: [expect.stringContaining(ids[2] ?? "")],
      gaps: [],
      stuck: [],
      breaches: []
    })
  })
})
