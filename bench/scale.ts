import * as Model from "./scaling/Model.js"
import * as Measured from "./scaling/measured.js"

/**
 * `npm run bench:scale`: the simulation behind docs/scaling.md. It first reproduces measurements within a quarter, then
 * computes the needs of higher throughputs. It uses no clock or randomness: the result is the same on every machine.
 */

const within = 0.25

const seconds = (millis: number): string => `${(millis / 1_000).toFixed(1)} s`
const share = (part: number): string => `${Math.round(part * 100)} %`
const line = (...cells: ReadonlyArray<string>) => console.log(`| ${cells.join(" | ")} |`)

let isSound = true
line("measured", "ops a second", "model", "p50", "model")
line("---", "---", "---", "---", "---")
for (const { measured, name, setup } of Measured.points) {
  const { p50, perSecond } = Model.simulate(setup)
  const isClose = (one: number, other: number) => Math.abs(one / other - 1) <= within
  if (!isClose(perSecond, measured.perSecond)) isSound = false
  if (measured.p50 !== undefined && !isClose(p50, measured.p50)) isSound = false
  const known = measured.p50 === undefined
  line(
    name,
    String(measured.perSecond),
    perSecond.toFixed(1),
    known ? "-" : seconds(measured.p50 ?? 0),
    known ? "-" : seconds(p50)
  )
}

/** The outcome if 90% of the demand is served, and 99% of the ops within three blocks; otherwise null. */
const answers = (setup: Model.Setup): Model.Outcome | null => {
  const found = Model.simulate(setup)
  const asked = "perSecond" in setup.demand ? setup.demand.perSecond : 0
  return found.perSecond >= 0.9 * asked && found.p99 <= 3_000 * setup.blockSeconds ? found : null
}

interface Need {
  readonly processors: number
  readonly signers: number
  readonly found: Model.Outcome
}

/** The fewest signers, and then the fewest processors. More signers make transactions smaller. */
const need = (setup: Model.Setup, perSecond: number): Need | null => {
  const least = Math.max(1, Math.ceil((perSecond * setup.cpuMillisPerOp) / 1_000))
  for (const signers of [1, 2, 4, 8])
    for (const processors of [least, least + 1, least + 2]) {
      const found = answers({ ...setup, processors, signers })
      if (found !== null) return { processors, signers, found }
    }
  return null
}

console.log("\nBlocks of 30M gas every 2 s, transactions of 2^24, ERC-20 transfers:\n")
line(
  "ops a second",
  "of the block",
  "CPU an op",
  "processors",
  "signers",
  "gas used",
  "ops a transaction",
  "p50",
  "p99"
)
line("---", "---", "---", "---", "---", "---", "---", "---", "---")
for (const cpuMillisPerOp of [
  Measured.cpuMillis.atReplicas,
  Measured.cpuMillis.shared,
  Measured.cpuMillis.ofForty
])
  for (const [perSecond, blockShare] of [
    [10, 1],
    [50, 1],
    [100, 1],
    [100, 0.25],
    [200, 1],
    [400, 1],
    [500, 1]
  ] as const) {
    const setup: Model.Setup = {
      ...Measured.plain,
      blockShare,
      cpuMillisPerOp,
      demand: { perSecond },
      seconds: 60
    }
    const needed = need(setup, perSecond)
    const start = [String(perSecond), share(blockShare), `${cpuMillisPerOp} ms`]
    if (needed === null) {
      line(...start, "-", "-", "beyond the block", "-", "-", "-")
      continue
    }
    const { found, processors, signers } = needed
    line(
      ...start,
      String(processors),
      String(signers),
      share(found.gasUse),
      found.opsPerTransaction.toFixed(1),
      seconds(found.p50),
      seconds(found.p99)
    )
  }
if (!isSound) {
  console.error("model and measurement differ")
  process.exitCode = 1
}
