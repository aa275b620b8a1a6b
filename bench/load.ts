import { parseArgs } from "node:util"
import * as Build from "../test/support/faults/Build.js"
import * as Fleet from "../test/support/replicas/Fleet.js"
import * as Mixed from "../test/support/replicas/Mixed.js"
import { quantile } from "./harness/Stats.js"

/**
 * `npm run bench:load`: mixed load on replicas over PostgreSQL and Redis, a block a second; by endpoint how many answers
 * a second and how long they took, and the memory of the processes from the start to the end.
 *
 * - `--seconds N` (600), `--callers N` (30), `--wallets N` (50)
 * - `--replicas LIST` one run each, for example `1,2,3` (3)
 */
const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    callers: { type: "string", default: "30" },
    wallets: { type: "string", default: "50" },
    replicas: { type: "string", default: "3" }
  }
})
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

const [seconds, callers, wallets] = [values.seconds, values.callers, values.wallets].map(Number)
if (seconds === undefined || callers === undefined || wallets === undefined) process.exit(2)

const build = Build.make()
for (const replicas of values.replicas.split(",").map(Number)) {
  const name = `load-${replicas}`
  const fleet = await Fleet.start({ build, replicas, wallets, signers: 2, name })
  try {
    const report = await Mixed.run(fleet, { callers, seconds, wallets, name })
    const counts: ReadonlyArray<bigint> = await fleet.world.counter.getFunction("counts")(report.executed)
    const wrong = counts.filter((count) => count !== 1n).length
    console.log(`\n${replicas} replicas, ${callers} callers, ${report.seconds.toFixed(0)} s:`)
    for (const [endpoint, millis] of report.latencies)
      console.log(
        `${endpoint.padEnd(24)} ${(millis.length / report.seconds).toFixed(1).padStart(8)}/s  ` +
          `p50 ${quantile(millis, 0.5).toFixed(0)} ms  p99 ${quantile(millis, 0.99).toFixed(0)} ms`
      )
    for (const [what, count] of report.refusals) console.log(`refused: ${what} ${count}`)
    console.log(`executed ${report.executed.length}, of which not exactly once ${wrong}`)
    const mib = (sizes: ReadonlyArray<number>) =>
      sizes.map((bytes) => (bytes / 1_048_576).toFixed(0)).join(" ")
    for (const [at, sizes] of report.memory.entries())
      if (at % 4 === 3) console.log(`memory at ${((at + 1) * seconds) / 20} s, MiB: ${mib(sizes)}`)
    if (wrong > 0) process.exitCode = 1
  } finally {
    await fleet.stop()
  }
}
build.remove()
