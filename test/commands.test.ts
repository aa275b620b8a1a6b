import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"

const run = promisify(execFile)

/** Checks with their own command: contracts, documentation, the installed package, the demo. */
const commands = ["contracts -- --check", "docs:site", "test:solidity", "test:package", "demo"]

/** They install packages: docs/install.md's five commands on Hardhat, a Next app, the image. */
const installing = ["test:hardhat", "test:next", "test:image"]

describe("npm run", () => {
  it.each([...commands, ...installing])("%s", { timeout: 20 * 60_000 }, async (command) => {
    const ended = await run("npm", ["run", "--silent", ...command.split(" ")], { maxBuffer: 2 ** 26 }).then(
      () => "",
      ({ code, stderr, stdout }) => `${stdout.slice(-5_000)}\n${stderr.slice(-5_000)}\nended with ${code}`
    )
    expect(ended).toBe("")
  })
})
