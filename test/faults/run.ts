import { spawnSync } from "node:child_process"
import { parseArgs } from "node:util"
import * as Campaign from "./support/Campaign.js"
import * as Patience from "./support/Patience.js"

/**
 * `npm run test:faults`: every accepted write reaches the chain exactly once, despite faults of node, database and
 * service. Then come the long forms of the tests of outages and of two services.
 *
 * - `--seeds N` number of seeds (200), from `--from N` (1) on; without the long forms
 * - `--seed N` only this seed, with the service's logs
 * - `--long` only the long forms
 * - `--worlds N` parallel chains (2)
 * - `--upgrade-from COMMIT` each process runs that commit until its first kill or stop, then this version
 * - `--patience MINUTES` only the test that accepted work outlasts a silent signer, a broken node and a stopped process
 */
const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string" },
    long: { type: "boolean", default: false },
    seed: { type: "string" },
    worlds: { type: "string", default: "2" },
    "upgrade-from": { type: "string" },
    patience: { type: "string" },
    verbose: { type: "boolean", default: false }
  }
})

const number = (name: string, text: string): number => {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  console.error(`--${name} is not a number: ${text}`)
  process.exit(2)
}

// Its child processes end with it.
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

const seedsOf = (): ReadonlyArray<number> => {
  if (values.seed !== undefined) return [number("seed", values.seed)]
  const from = number("from", values.from ?? "1")
  return Array.from({ length: number("seeds", values.seeds ?? "200") }, (_, index) => from + index)
}

const storms = async (): Promise<boolean> => {
  const summary = await Campaign.run({
    seeds: seedsOf(),
    worlds: Math.max(1, number("worlds", values.worlds)),
    seedsPerWorld: 25,
    verbose: values.verbose || values.seed !== undefined,
    upgradeFrom: values["upgrade-from"],
    print: (line) => console.log(line)
  })
  console.log()
  for (const line of Campaign.summaryLines(summary)) console.log(line)
  return Campaign.passed(summary)
}

const longForms = [
  "test/scenarios/engine/databaseAway.test.ts",
  "test/scenarios/replicas/twoServices.test.ts"
]

const long = (): boolean => {
  const env = { ...process.env, CASTELLAN_TEST_LONG: "1" }
  return spawnSync("npx", ["vitest", "run", ...longForms], { env, stdio: "inherit" }).status === 0
}

const patience = (minutes: string): Promise<boolean> =>
  Patience.passed(number("patience", minutes), (line) => console.log(line))

const isPart = values.seed !== undefined || values.seeds !== undefined || values.from !== undefined
const passed =
  values.patience !== undefined
    ? [await patience(values.patience)]
    : [...(values.long ? [] : [await storms()]), ...(isPart ? [] : [long()])]
process.exitCode = passed.every((each) => each) ? 0 : 1
