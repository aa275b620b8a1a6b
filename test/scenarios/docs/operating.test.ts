import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Anvil, startAnvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as Server from "../../support/postgres/Server.js"
import type { Finished } from "../../support/process/Finished.js"
import * as Port from "../../support/process/Port.js"
import { use } from "../../support/Use.js"
import * as Guides from "./Guides.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-guides-"))
/** Each transaction gets a block immediately, and blocks continue without one: no script of a guide waits forever. */
const blocks = { blockTime: 1, args: ["--mixed-mining"] }
let anvil: Anvil
const postgres = use(Server.start)

beforeAll(async () => {
  await Guides.prepare(folder)
  anvil = await startAnvil({ chainId: 80_002, ...blocks })
})
afterAll(async () => {
  await anvil.stop()
  rmSync(folder, { recursive: true })
})

/** Values for the placeholders of these guides, and free ports, whose command is the one that names the configuration. */
const choices = async (named: string, more = ""): Promise<Guides.Choices> => {
  const port = await Port.free()
  const ports = `CASTELLAN__listen__port=${port} CASTELLAN__admin__port=${await Port.free()}`
  return [
    ["https://your-node.example", anvil.url],
    ["0xYOUR_PRIVATE_KEY", devKeys.faucet.privateKey],
    ["8080", String(port)],
    [named, `${named} ${ports} ${more}`]
  ]
}

const expectDone = (ran: Finished): void => {
  expect(ran.status, Guides.lastLines(ran)).toBe(0)
  const statuses = Guides.statuses(ran.stdout)
  expect(statuses.length).toBeGreaterThan(2)
  expect(Guides.refusals(folder)).toEqual([])
  expect(new Set(statuses)).toEqual(new Set(["1"]))
}

describe("guides in an empty folder", () => {
  it("the guide of Polygon Amoy and its follow-up guides work from an empty folder", async () => {
    const live = await Effect.runPromise(Server.createDatabase(postgres, "live"))
    const restored = await Effect.runPromise(Server.createDatabase(postgres, "restored"))
    const databases = `export DATABASE_URL=${live} RESTORE_URL=${restored}`
    const ran = await Guides.run(folder, Guides.onAmoy, [
      ...(await choices("export CASTELLAN_CONFIG=castellan.jsonc")),
      ["npx castellan store copy", `${databases}; npx castellan store copy`]
    ])
    expectDone(ran)
  }, 480_000)

  it("the guide of Base Sepolia works; the local chain has no layer 1 fees", async () => {
    await anvil.stop()
    anvil = await startAnvil({ chainId: 84_532, ...blocks })
    const ran = await Guides.run(folder, Guides.onBase, [
      ...(await choices("export CASTELLAN_CONFIG=castellan.json", "CASTELLAN__networks__0__l1Fee=null"))
    ])
    expect(ran.status, Guides.lastLines(ran)).toBe(0)
    expect(ran.stdout.match(/^true$/gm), Guides.lastLines(ran)).toHaveLength(2)
  }, 240_000)
})
