import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { id as hashOf } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as World from "../../faults/support/World.js"
import * as Rig from "../../replicas/support/Rig.js"
import { use } from "../../support/Use.js"

const world = use(World.start)
let asked = 0
/** It accepts every call and replies to none while the test runs. */
const silent = createServer(() => {
  asked += 1
})
const folder = mkdtempSync(join(tmpdir(), "castellan-silent-"))

beforeAll(async () => {
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
})
afterAll(async () => {
  silent.closeAllConnections()
  silent.close()
  rmSync(folder, { recursive: true })
})

describe("an operator's node that is silent", { timeout: 120_000 }, () => {
  it("delays no start, and work under way continues at the caller's node", async () => {
    const rig = await Rig.make(world, folder, { path: join(folder, "silent.sqlite") })
    const id = hashOf("silent")
    try {
      const first = await rig.begin()
      await rig.prepare(first)
      await world.send("evm_setAutomine", false)
      const left = rig.exchange(first, "/execute", "left", rig.hit(0, id))
      await expect.poll(rig.pooled, { timeout: 20_000 }).toBe(1)
      await rig.end(first)
      expect((await left).body.code).toBe("outcome_unknown")

      const { port } = silent.address() as AddressInfo
      const second = await rig.begin({}, `http://127.0.0.1:${port}`)
      expect((await rig.exchange(second, "/health/ready", null, null)).status).toBe(200)
      await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(0)
      await world.send("evm_setAutomine", true)
      await world.send("evm_mine")
      expect(await rig.insist(() => second, "/execute", "left", rig.hit(0, id))).toMatchObject({
        status: 200,
        body: { status: 1 }
      })
      expect(await rig.count(id)).toBe(1)
      await expect.poll(rig.open, { timeout: 20_000 }).toEqual([])
    } finally {
      await rig.endAll()
    }
  })
})
