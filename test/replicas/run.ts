import { parseArgs } from "node:util"
import * as Faults from "./support/Faults.js"
import * as Proof from "./support/Proof.js"
import * as Verdict from "./support/Verdict.js"

/**
 * `npm run test:replicas`: ops at three replicas of the service while replicas are killed, stopped and cut off, the
 * database restarts and Redis is away. docs/testing.md defines its counts.
 *
 * - `--ops N` (2,000), `--wallets N` (200), `--seed TEXT` (1)
 * - `--clients N` (32) concurrent clients
 * - `--minutes N` (15): time limit of every answer
 * - `--upgrade-from COMMIT` the replicas run that commit until the rolling restart replaces them by this version
 * - `--short` shorter faults, as in `npm test`
 * - `CASTELLAN_TEST_LOGS=FILE` keeps the logs of the replicas
 */
const { values } = parseArgs({
  options: {
    ops: { type: "string", default: "2000" },
    wallets: { type: "string", default: "200" },
    clients: { type: "string", default: "32" },
    minutes: { type: "string", default: "15" },
    "upgrade-from": { type: "string" },
    seed: { type: "string", default: "1" },
    short: { type: "boolean", default: false }
  }
})

const number = (name: "ops" | "wallets" | "clients" | "minutes"): number => {
  const value = Number(values[name])
  if (Number.isSafeInteger(value) && value > 0) return value
  console.error(`--${name} is not a number: ${values[name]}`)
  process.exit(2)
}

// Its child processes end with it.
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

const { takeOvers, verdict } = await Proof.run({
  ops: number("ops"),
  wallets: number("wallets"),
  clients: number("clients"),
  seed: values.seed,
  durations: values.short ? Faults.short : Faults.full,
  upgradeFrom: values["upgrade-from"],
  limitMillis: number("minutes") * 60_000,
  print: (line) => console.log(line)
})
const isLate = takeOvers.some(({ millis }) => millis === null || millis > 15_000)
process.exitCode = Verdict.kinds.every((kind) => verdict[kind].length === 0) && !isLate ? 0 : 1
