import { AbiCoder, keccak256 } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { use } from "../support/Use.js"
import * as Build from "./support/Build.js"
import * as Fault from "./support/Fault.js"
import type { Scenario } from "./support/Scenario.js"
import * as Seed from "./support/Seed.js"
import * as World from "./support/World.js"

/** Executions without faults: only the test's own breach can fail. */
const scenario: Scenario = {
  seed: 0,
  signers: 1,
  wallets: 1,
  mining: { mode: "automine" },
  confirmations: 1,
  settledDepth: 1,
  bumpAfterMillis: 30_000,
  receiptTimeoutMillis: 20_000,
  requests: [
    [{ wallet: 0, deed: "hit" as const }],
    [{ wallet: 0, deed: "hit" as const }],
    [{ wallet: 0, deed: "hitAndRevert" as const }],
    [
      { wallet: 0, deed: "hit" as const },
      { wallet: 0, deed: "hit" as const, dependsOn: 0 }
    ]
  ].map((ops) => ({
    at: 0,
    endpoint: "execute" as const,
    signer: 0,
    ops,
    patience: 20_000,
    isAsync: false,
    twin: false
  })),
  script: Fault.none,
  kills: [],
  store: "sqlite",
  others: [],
  outages: [],
  version: "v0.7",
  remote: false,
  nodeReplacedAt: null,
  events: [],
  impulses: [],
  stormMillis: 0
}

describe("a judgement", () => {
  const world = use(World.start)
  let build: Build.Build
  beforeAll(async () => {
    build = await Build.make()
  })
  afterAll(async () => {
    build.remove()
  })

  it("finds exactly the lost, doubled, misreported and orphaned writes", async () => {
    const ids: Array<string> = []
    const { verdict, works } = await Seed.run(world, build, scenario, async (works) => {
      ids.push(...works.map(({ id }) => id))
      const [lost, doubled, failed, first] = ids
      for (const id of [lost, first]) {
        const slot = keccak256(AbiCoder.defaultAbiCoder().encode(["bytes32", "uint256"], [id, 0]))
        await world.send("anvil_setStorageAt", await world.counter.getAddress(), slot, `0x${"00".repeat(32)}`)
      }
      for (const id of [doubled, failed]) await (await world.counter.getFunction("hit")(id)).wait()
    })
    expect(works).toEqual({ success: 4, failure: 1, nothing: 0 })
    expect(verdict).toEqual({
      lost: [expect.stringContaining(ids[0] ?? ""), expect.stringContaining(ids[3] ?? "")],
      duplicated: [expect.stringContaining(ids[1] ?? "")],
      misreported: [expect.stringContaining(ids[2] ?? "")],
      orphaned: [expect.stringContaining(ids[4] ?? "")],
      gaps: [],
      stuck: [],
      breaches: [],
      undelivered: [],
      outOfOrder: [],
      invented: []
    })
  })
})
