import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Program, runSource } from "../../support/process/Program.js"
import * as Guides from "./Guides.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-guides-"))
let dev: Program

beforeAll(async () => {
  await Guides.prepare(folder)
  dev = await runSource("src/hosts/cli/castellan.ts", ["dev", "--port", "0", "--rpc-port", "0"], {
    cwd: folder
  })
  await dev.says("Ctrl-C stops it")
}, 120_000)
afterAll(async () => {
  dev.child.kill("SIGTERM")
  await dev.ended
  rmSync(folder, { recursive: true })
})

const followed = async (pages: ReadonlyArray<string>): Promise<string> => {
  const ran = await Guides.run(folder, pages, [["npx castellan dev", ": it runs already"]])
  expect(ran.status, Guides.lastLines(ran)).toBe(0)
  return ran.stdout
}

describe("on a development stack", () => {
  it("the guides work in order from the quick start", async () => {
    const said = await followed(Guides.onDevelopmentStack)
    expect(said).toContain("threshold not met: have 1 of 2")
    expect(said.match(/^120 of 120 paid$/gm)).toHaveLength(2)
    const statuses = Guides.statuses(said)
    expect(statuses.length).toBeGreaterThan(5)
    expect(new Set(statuses)).toEqual(new Set(["1"]))
  }, 480_000)
})
