import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import * as Build from "../test/faults/support/Build.js"
import * as Fleet from "../test/replicas/support/Fleet.js"
import * as Mixed from "../test/replicas/support/Mixed.js"
import { quantile } from "./harness/Stats.js"

/**
 * `npm run bench:load`: mixed load on replicas over PostgreSQL and Redis, with a block a second. Reports throughput and
 * latency by endpoint, and the processes' memory from start to end.
 *
 * - `--seconds N` (600), `--callers N` (30), `--wallets N` (50)
 * - `--replicas LIST` one run each, for example `1,2,3` (3)
 * - `--concurrent N` limits.concurrentRequests of each process (512): fewer than callers measures 503 responses
 */
const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    callers: { type: "string", default: "30" },
    wallets: { type: "string", default: "50" },
    replicas: { type: "string", default: "3" },
    concurrent: { type: "string", default: "512" }
  }
})
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

const [seconds = 0, callers = 0, wallets = 0, concurrentRequests = 0] = [
  values.seconds,
  values.callers,
  values.wallets,
  values.concurrent
].map(Number)
if (
  ![seconds, callers, wallets, concurrentRequests].every((value) => Number.isSafeInteger(value) && value > 0)
) {
  console.error("--seconds, --callers, --wallets, --concurrent: expected integers above 0")
  process.exit(2)
}

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

/** The exhausted resource; more of the others makes no difference. */
const bound = ({ machine, replicas }: Mixed.Report["processors"]): string => {
  if (machine > 0.9 * availableParallelism()) return "the processors of this machine"
  if (replicas.some((share) => share > 0.9)) return "the processor of a replica"
  return "callers, who wait for blocks"
}

const build = await Build.make()
for (const replicas of values.replicas.split(",").map(Number)) {
  const name = `load-${replicas}`
  const fleet = await Fleet.start({
    build,
    replicas,
    wallets,
    signers: 2,
    name,
    limits: { concurrentRequests }
  })
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
    const { clients, machine, replicas: shares } = report.processors
    const executedASecond = report.executed.length / report.seconds
    const shareOfAll = shares.reduce((sum, share) => sum + share, 0)
    console.log(
      `${executedASecond.toFixed(1)} executions a second; processors: replicas ${shares.map((share) => share.toFixed(2)).join(" ")}, ` +
        `clients ${clients.toFixed(2)}, whole machine ${machine.toFixed(2)} of ${availableParallelism()}; ` +
        `${((1_000 * shareOfAll) / executedASecond).toFixed(1)} ms of a replica's an execution and what comes with it; ` +
        `bounded by ${bound(report.processors)}`
    )
    if (report.refusedAfter.length > 0)
      console.log(
        `503 after p50 ${quantile(report.refusedAfter, 0.5).toFixed(0)} ms, p99 ${quantile(report.refusedAfter, 0.99).toFixed(0)} ms`
      )
    console.log(`executed ${report.executed.length}, not exactly once: ${wrong}`)
    const mib = (sizes: ReadonlyArray<number>) =>
      sizes.map((bytes) => (bytes / 1_048_576).toFixed(0)).join(" ")
    for (const [at, sizes] of report.memory.entries())
      if (at % 4 === 3) console.log(`memory at ${((at + 1) * seconds) / 20} s, MiB: ${mib(sizes)}`)
    const quarter = (from: number) =>
      mean(report.memory.slice(from, from + 5).map((sizes) => mean(sizes))) / 1_048_576
    console.log(
      `memory of a replica, second quarter ${quarter(5).toFixed(0)} MiB, last ${quarter(15).toFixed(0)} MiB`
    )
    if (wrong > 0) process.exitCode = 1
  } finally {
    await fleet.stop()
  }
}
build.remove()
