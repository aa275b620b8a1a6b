import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { build } from "esbuild"
import { afterAll, describe, expect, it } from "vitest"
import * as Launch from "../../../src/hosts/node/Launch.js"
import { root } from "../../support/process/Program.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-launch-"))
afterAll(() => rmSync(folder, { recursive: true }))

const source = join(root, "src/hosts/node/Launch.ts")

describe("a process of castellan", () => {
  it("an older Node gets the required version and the way to install it", () => {
    for (const version of ["22.19.0", "22.22.1", "24.0.0", "24.21.0", "26.1.0"])
      expect(Launch.problem(version), version).toBeNull()
    for (const version of ["16.20.2", "20.20.2", "22.18.0"]) {
      const said = Launch.problem(version) ?? ""
      expect(said).toContain(`castellan needs Node 22.19 or later, and this is Node ${version}`)
      expect(said).toContain("npm install node@24")
      expect(said).not.toContain("\n")
    }
  })

  it("the required version is that of package.json", () => {
    const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const floor = engines.node.replace(">=", "")
    expect(Launch.problem(`${floor}.0`)).toBeNull()
    const [major, minor] = floor.split(".").map(Number)
    expect(Launch.problem(`${major}.${minor - 1}.0`)).not.toBeNull()
  })

  it("Launch imports no module, and each entry imports only Launch, before the version check", () => {
    expect(readFileSync(source, "utf8")).not.toMatch(/\bimport\b/)
    for (const entry of ["node/main.ts", "cli/castellan.ts"]) {
      const text = readFileSync(join(root, "src/hosts", entry), "utf8")
      expect([...text.matchAll(/^import .*$/gm)].map(([line]) => line.replace(/.*\//, ""))).toEqual([
        'Launch.js"'
      ])
    }
  })

  it("the young generation is limited unless an option sets its size", () => {
    expect(Launch.boundMemory(["--enable-source-maps"], undefined)).toEqual([
      "--max-semi-space-size=8",
      "--heap-growing-percent=50",
      "--enable-source-maps"
    ])
    expect(Launch.boundMemory(["--max-semi-space-size=32"], undefined)).toBeNull()
    expect(Launch.boundMemory([], "--max_semi_space_size=16 --no-warnings")).toBeNull()
  })

  it("becomes a process with it: same number, arguments and streams", async () => {
    await build({ entryPoints: [source], outfile: join(folder, "Launch.mjs"), format: "esm" })
    const program = join(folder, "program.mjs")
    writeFileSync(
      program,
      `import { bound } from ${JSON.stringify(pathToFileURL(join(folder, "Launch.mjs")).href)}
      import { writeSync } from "node:fs"
      writeSync(1, process.pid + "\\n")
      bound()
      writeSync(1, JSON.stringify([process.execArgv, process.argv.slice(2), process.env.KEPT]))`
    )
    const { NODE_OPTIONS, ...env } = process.env
    const { stderr, stdout } = spawnSync(process.execPath, ["--no-deprecation", program, "a", "b c"], {
      env: { ...env, KEPT: "yes" },
      encoding: "utf8"
    })
    expect(stderr).toBe("")
    const [first, second, told = ""] = stdout.split("\n")
    expect(second).toBe(first)
    expect(JSON.parse(told)).toEqual([
      ["--max-semi-space-size=8", "--heap-growing-percent=50", "--no-deprecation"],
      ["a", "b c"],
      "yes"
    ])
  })
})
