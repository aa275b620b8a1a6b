import { parseArgs } from "node:util"
import * as Campaign from "../support/faults/Campaign.js"

/**
 * `npm run test:faults`: every accepted write reaches the chain exactly once, whatever happens to node and service.
 *
 * - `--seeds N` how many (200), from `--from N` (1) on
 * - `--seed N` this one alone, with the service's logs
 * - `--worlds N` chains side by side (2)
 */
const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "200" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    worlds: { type: "string", default: "2" },
    verbose: { type: "boolean", default: false }
  }
})

const number = (name: string, text: string): number => {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  console.error(`--${name} is no number: ${text}`)
  process.exit(2)
}

const from = number("from", values.from)
const seeds =
  values.seed === undefined
    ? Array.from({ length: number("seeds", values.seeds) }, (_, index) => from + index)
    : [number("seed", values.seed)]

const summary = await Campaign.run({
  seeds,
  worlds: Math.max(1, number("worlds", values.worlds)),
  seedsPerWorld: 25,
  verbose: values.verbose || values.seed !== undefined,
  print: (line) => console.log(line)
})
console.log()
for (const line of Campaign.summaryLines(summary)) console.log(line)
process.exitCode = Campaign.passed(summary) ? 0 : 1
