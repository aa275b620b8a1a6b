import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "@effect/vitest"
import { startAnvil } from "../../../../src/hosts/cli/dev/Anvil.js"
import { remember } from "../../../support/LeftBehind.js"

const files = (folder: string) => readdirSync(folder, { recursive: true })

test("a stopped chain leaves none of its old blocks on disk", async () => {
  const folder = mkdtempSync(join(tmpdir(), "anvil-"))
  const before = process.env.TMPDIR
  const undo = remember(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    rmSync(folder, { recursive: true, force: true })
  })
  process.env.TMPDIR = folder
  const chain = await startAnvil()
  try {
    // Anvil keeps recent states in memory and writes older ones to files.
    for (let block = 0; block < 600; block++)
      await fetch(chain.url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: block, method: "evm_mine", params: [] })
      }).then((answer) => answer.text())
    expect(files(folder).length).toBeGreaterThan(10)
  } finally {
    await chain.stop()
  }
  expect(files(folder)).toEqual([])
  undo()
})
