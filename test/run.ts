import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Counts from "./support/Counts.js"

/** `npm test`: every check of the project, or those that are named: `npm test -- lint tests`. */

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "castellan-test-"))
const results = join(folder, "vitest.json")
const solidity = join(folder, "solidity.json")
const exchanges = join(folder, "exchanges.jsonl")

const npmRun = (script: string, ...args: ReadonlyArray<string>) => ["npm", "run", "--silent", script, ...args]

const steps: Readonly<Record<string, ReadonlyArray<string>>> = {
  lint: npmRun("lint"),
  types: npmRun("typecheck"),
  imports: npmRun("depcruise"),
  contracts: npmRun("contracts", "--", "--check"),
  tests: ["npx", "vitest", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${results}`],
  solidity: npmRun("test:solidity"),
  demo: npmRun("demo"),
  bench: npmRun("bench", "--", "--quick")
}

const named = process.argv.slice(2)
const unknown = named.filter((name) => steps[name] === undefined)
if (unknown.length > 0) {
  console.error(`no such step: ${unknown.join(", ")}; there are ${Object.keys(steps).join(", ")}`)
  process.exit(2)
}
const chosen = Object.entries(steps).filter(([name]) => named.length === 0 || named.includes(name))

const outcomes = chosen.map(([name, [command = "", ...args]]) => {
  console.log(`\n== ${name}`)
  const began = performance.now()
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, CASTELLAN_TEST_EXCHANGES: exchanges, CASTELLAN_SOLIDITY_RESULTS: solidity }
  })
  return { name, seconds: (performance.now() - began) / 1_000, passed: status === 0 }
})

console.log("\n== summary")
for (const { name, passed, seconds } of outcomes)
  console.log(`${passed ? "ok    " : "FAILED"} ${name.padEnd(10)} ${seconds.toFixed(1).padStart(6)} s`)

const ran = (step: string) => chosen.some(([name]) => name === step)
const ranTests = ran("tests")
const counts = Counts.add(
  ranTests ? Counts.read(() => readFileSync(results, "utf8")) : Counts.none,
  ran("solidity") ? Counts.readSolidity(() => readFileSync(solidity, "utf8")) : Counts.none
)
const held = ranTests ? Counts.exchanges(() => readFileSync(exchanges, "utf8")) : null
rmSync(folder, { recursive: true })
for (const { name, reason } of counts.skipped) console.log(`skipped: ${name}: ${reason}`)
if (held !== null)
  console.log(`${held.requests} requests and ${held.answers} answers held against the OpenAPI document`)
// A failed step that is no test counts as well; so does a test run that ended badly with every test passed.
const failedSteps = outcomes.filter(
  ({ name, passed }) => !passed && (!["tests", "solidity"].includes(name) || counts.failed === 0)
).length
// Tests that pass without a word to the service have not tested it.
const unheld = held !== null && held.answers === 0 ? 1 : 0
const failed = counts.failed + failedSteps + unheld
const skipped = counts.skipped.length > 0 ? `, ${counts.skipped.length} skipped` : ""
console.log(`${counts.passed} passed, ${failed} failed${skipped}`)
process.exitCode = failed === 0 ? 0 : 1
