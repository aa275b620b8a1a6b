import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { root } from "../test/support/process/Program.js"
import { claim as alone } from "./claims/alone.js"
import { claim as batch } from "./claims/batch.js"
import { claim as blocks } from "./claims/blocks.js"
import { claim as callers } from "./claims/callers.js"
import { claim as endpoint } from "./claims/endpoint.js"
import { claim as functions } from "./claims/functions.js"
import { claim as growth } from "./claims/growth.js"
import { claim as journal } from "./claims/journal.js"
import { claim as predict } from "./claims/predict.js"
import { claim as refusals } from "./claims/refusals.js"
import { claim as roundTrips } from "./claims/roundTrips.js"
import { claim as rules } from "./claims/rules.js"
import { claim as slowSigner } from "./claims/slowSigner.js"
import { claim as start } from "./claims/start.js"
import { claim as waiting } from "./claims/waiting.js"
import type { Claim, Result } from "./harness/Claim.js"
import * as Context from "./harness/Context.js"
import * as Machine from "./harness/Machine.js"
import * as Peers from "./harness/Peers.js"
import * as Report from "./harness/Report.js"

const usage = `npm run bench -- [--quick] [--no-peers] [--profile FOLDER] [NAME...]

Measures castellan against its alternatives and writes docs/performance.md. Names choose claims.
--quick     checks the results only, with little load and without peers; writes nothing
--no-peers  measures only castellan
--profile   takes CPU profiles of the service into the folder`

const claims: ReadonlyArray<Claim> = [
  callers,
  alone,
  batch,
  roundTrips,
  predict,
  functions,
  endpoint,
  refusals,
  journal,
  growth,
  start,
  blocks,
  rules,
  slowSigner,
  waiting
]

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
    profile: { type: "string" },
    help: { type: "boolean", default: false }
  }
})
const unknown = positionals.filter((name) => !claims.some((claim) => claim.name === name))
if (values.help || unknown.length > 0) {
  console.log(`${usage}\n\nClaims: ${claims.map(({ name }) => name).join(", ")}`)
  for (const name of unknown) console.error(`there is no claim ${name}`)
  process.exit(unknown.length > 0 ? 2 : 0)
}

const chosen = claims.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
const { quick } = values
const peers = !quick && !values["no-peers"]
if (peers) Peers.install()

const session = await Context.open({ quick, peers, profiles: values.profile ?? null })
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

/** Ends a hung claim with all its processes, which would occupy the machine. */
const bounded = async (claim: Claim): Promise<Result> => {
  const { context, release } = session.context(claim.name)
  const seconds = quick ? 120 : claim.boundSeconds
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${seconds} s`)), seconds * 1_000)
  })
  try {
    return await Promise.race([claim.run(context), over])
  } finally {
    clearTimeout(timer)
    await release()
  }
}

console.log(
  `load average ${Machine.load()}${Machine.busy() ? ": the machine is busy, figures are indicative" : ""}`
)
const sections: Array<readonly [Claim, string]> = []
const raw: Record<string, unknown> = {}
let failed = 0
for (const claim of chosen) {
  const before = Machine.load()
  const began = performance.now()
  console.log(`\n${claim.name}: ${claim.title} (load ${before})`)
  try {
    const result = await bounded(claim)
    const circumstances = { date: new Date().toISOString().slice(0, 10), before, after: Machine.load() }
    for (const line of Report.lines(result)) console.log(line)
    for (const note of result.notes) console.log(`  ${note}`)
    sections.push([claim, Report.section(result, circumstances)])
    raw[claim.name] = { ...circumstances, ...result }
  } catch (cause) {
    failed += 1
    console.error(`  FAILED ${cause instanceof Error ? cause.stack : String(cause)}`)
  }
  console.log(`  ${((performance.now() - began) / 1_000).toFixed(0)} s, load ${Machine.load()}`)
}
session.close()

if (!quick) {
  const folder = join(root, "bench/results")
  mkdirSync(folder, { recursive: true })
  const machine = Machine.describe(Peers.versions())
  const file = join(folder, `${new Date().toISOString().replaceAll(":", "-")}.json`)
  writeFileSync(file, `${JSON.stringify({ machine, raw }, null, 2)}\n`)
  // Writes no report of a claim without its peers.
  if (peers && sections.length > 0) Report.write(join(root, "docs/performance.md"), machine, sections)
  console.log(`\nraw results in ${file}`)
}
console.log(`${chosen.length - failed} claims measured, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
