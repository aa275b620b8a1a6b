import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Command from "./support/run/Command.js"
import * as Counts from "./support/run/Counts.js"
import * as Machine from "./support/run/Machine.js"
import * as Report from "./support/run/Report.js"
import * as Schedule from "./support/run/Schedule.js"
import * as Seconds from "./support/run/Seconds.js"
import * as Survivors from "./support/run/Survivors.js"

/**
 * `npm test`: every check of the project, or those that are named: `npm test -- lint units`. What fails and may have
 * failed by chance is tried once more; the summary tells both. `--record` writes down how long test files took.
 * docs/testing.md says more.
 */

process.chdir(fileURLToPath(new URL("..", import.meta.url)))
const folder = mkdtempSync(join(tmpdir(), "castellan-test-"))
// PostgreSQL, which runs as another user when root starts it, finds its own folder in it, and nothing else.
chmodSync(folder, 0o711)
const files = {
  solidity: join(folder, "solidity.json"),
  exchanges: join(folder, "exchanges.jsonl")
}
const env: NodeJS.ProcessEnv = {
  ...process.env,
  ...(process.stdout.isTTY && { FORCE_COLOR: "1" }),
  // What a test that was killed leaves behind goes with the rest.
  TMPDIR: folder,
  CASTELLAN_TEST_EXCHANGES: files.exchanges,
  CASTELLAN_SOLIDITY_RESULTS: files.solidity
}

const npmRun = (script: string, ...args: ReadonlyArray<string>) => ["npm", "run", "--silent", script, ...args]
const vitest = (...args: ReadonlyArray<string>) => [
  ...["npx", "vitest", "run", "--reporter=default", "--reporter=./test/support/run/Reporter.ts"],
  ...args
]

/**
 * A process for many files loads the libraries once, and runs compiled what the file before has run often. As few as many
 * processes: Vitest 3.2 stumbles over ending one of its own accord, and the run with it.
 */
const shared = (processes: number): ReadonlyArray<string> =>
  ["isolate=false", `minForks=${processes}`, `maxForks=${processes}`].map(
    (option) => `--poolOptions.forks.${option}`
  )

/** The priority of what runs beside the first step: it takes what is left. */
const leftOver = 5

/** More steps side by side would want more memory than machines have. */
const mostSideBySide = 4

interface Step extends Pick<Schedule.Job, "processors"> {
  readonly name: string
  readonly command: ReadonlyArray<string>
  readonly limitMinutes: number
  /** Vitest's files fail one by one, and those are run again. Of a whole step that may fail by chance, the step is. */
  readonly again?: "files" | "step"
}

const unitFolders = ["test/domain", "test/application"]

/**
 * In the order in which they begin. What takes longest waits for two fifths of its time, for blocks, leases and locks;
 * the others use what it leaves of the processors.
 */
const steps: ReadonlyArray<Step> = [
  {
    name: "integration",
    command: vitest(...shared(4), ...unitFolders.flatMap((path) => ["--exclude", `${path}/**`])),
    limitMinutes: 55,
    again: "files",
    processors: 1
  },
  { name: "lint", command: npmRun("lint"), limitMinutes: 10, processors: 1 },
  { name: "types", command: npmRun("typecheck"), limitMinutes: 20, processors: 1 },
  {
    name: "units",
    command: vitest(...shared(2), ...unitFolders),
    limitMinutes: 20,
    again: "files",
    processors: 1
  },
  { name: "imports", command: npmRun("depcruise"), limitMinutes: 10, processors: 1 },
  { name: "contracts", command: npmRun("contracts", "--", "--check"), limitMinutes: 20, processors: 1 },
  { name: "site", command: npmRun("docs:site"), limitMinutes: 10, processors: 1 },
  { name: "solidity", command: npmRun("test:solidity"), limitMinutes: 20, processors: 1 },
  { name: "package", command: npmRun("test:package"), limitMinutes: 20, processors: 1 },
  { name: "demo", command: npmRun("demo"), limitMinutes: 5, again: "step", processors: 1 },
  // It compares times.
  {
    name: "bench",
    command: npmRun("bench", "--", "--quick"),
    limitMinutes: 15,
    again: "step",
    processors: "alone"
  }
]

const recordOption = "--record"
const named = process.argv.slice(2).filter((word) => word !== recordOption)
const recorded = process.argv.includes(recordOption)
const unknown = named.filter((name) => !steps.some((step) => step.name === name))
if (unknown.length > 0) {
  console.error(`no such step: ${unknown.join(", ")}; there are ${steps.map(({ name }) => name).join(", ")}`)
  process.exit(2)
}
const chosen = (step: Step): boolean => named.length === 0 || named.includes(step.name)
const missing = Machine.missing(steps.filter(chosen).map(({ name }) => name))
if (missing.length > 0) {
  for (const line of missing) console.error(line)
  console.error(`0 passed, ${missing.length} failed`)
  process.exit(1)
}

const readOr = (path: string, absent: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return absent
  }
}

interface Outcome {
  readonly step: Step
  readonly ended: Command.Ended
  readonly report: Report.Report
  readonly verdict: Report.Verdict
  /** What the step's first try said at its end, where the second one went well. */
  readonly firstTail: ReadonlyArray<string>
}

const diskInUse = Machine.watchDisk()
let tries = 0
let stoppedBy: NodeJS.Signals | null = null

const run = async (command: ReadonlyArray<string>, options: Omit<Command.Options, "env">) => {
  const path = join(folder, `vitest-${++tries}.jsonl`)
  const ended = await Command.run(command, { env: { ...env, CASTELLAN_TEST_REPORT: path }, ...options })
  return { ended, report: Report.read(readOr(path, "")) }
}

type First = Pick<Outcome, "step" | "ended" | "report">

const perform = async (step: Step, isFirst: boolean, isAlone: boolean): Promise<First> => {
  if (isFirst) console.log(`\n== ${step.name}`)
  const options = { limitMinutes: step.limitMinutes, quiet: !isFirst, priority: isAlone ? 0 : leftOver }
  const { ended, report } = await run(step.command, options)
  if (!isFirst) console.log(`== ${step.name}: ${ended.ok ? "ok" : "FAILED"}`)
  return { step, ended, report }
}

const repeated = async (file: string): Promise<Report.Repeated> => {
  console.log(`\n== once more, alone: ${file}`)
  const { ended, report } = await run(vitest(file), { limitMinutes: 6 })
  return { file, report, ok: ended.ok }
}

/** Tries once more what may have failed by chance; nothing else runs beside it. */
const judged = async ({ ended, report, step }: First): Promise<Outcome> => {
  const again = step.again === "files" && Report.isToRepeatWhole(report) ? "step" : step.again
  if (again === "step" && !ended.ok && stoppedBy === null) {
    console.log(`\n== once more: ${step.name}`)
    const second = await run(step.command, { limitMinutes: step.limitMinutes })
    const verdict = Report.verdict(second.report, [])
    return { step, ...second, verdict, firstTail: second.ended.ok ? ended.tail : [] }
  }
  const files: Array<Report.Repeated> = []
  if (again === "files" && !ended.ok)
    for (const file of Report.toRepeat(report)) if (stoppedBy === null) files.push(await repeated(file))
  const verdict = Report.verdict(report, files)
  const ok = ended.ok || (files.length > 0 && verdict.failures.length === 0)
  return { step, ended: { ...ended, ok }, report, verdict, firstTail: [] }
}

const indented = (lines: ReadonlyArray<string>): string => lines.map((line) => `    | ${line}`).join("\n")

/** Says how it went, and ends the process. */
const finish = (outcomes: ReadonlyArray<Outcome>): never => {
  const has = (name: string): boolean => outcomes.some(({ step }) => step.name === name)
  console.log("\n== summary")
  for (const { ended, step } of outcomes)
    console.log(
      `${ended.ok ? "ok    " : "FAILED"} ${step.name.padEnd(11)} ${ended.seconds.toFixed(1).padStart(6)} s`
    )
  for (const { report, step } of outcomes)
    for (const line of Report.slowest(report, 5)) console.log(`${step.name}: ${line}`)
  const verdicts = outcomes.map(({ verdict }) => verdict)
  const solidity = has("solidity") ? Counts.solidity(readOr(files.solidity, "")) : { passed: 0, failures: [] }
  const held = has("integration") ? Counts.exchanges(readOr(files.exchanges, "")) : null
  if (held !== null)
    console.log(`${held.requests} requests and ${held.answers} answers held against the OpenAPI document`)
  console.log(`disk: ${(diskInUse() / 2 ** 30).toFixed(1)} GiB in use at most`)
  const skipped = verdicts.flatMap((verdict) => verdict.skipped)
  const skips = skipped.map(({ name, reason }) => `skipped: ${name}: ${reason}`)
  for (const line of skips) console.log(line)

  const unsteady = [
    ...verdicts.flatMap((verdict) => verdict.unsteady.map((failure) => `unsteady: ${Report.line(failure)}`)),
    ...outcomes.flatMap(({ firstTail, step }) =>
      firstTail.length === 0 ? [] : [`unsteady: ${step.name} failed at first:\n${indented(firstTail)}`]
    )
  ]
  const failed = [
    ...verdicts.flatMap((verdict) => verdict.failures.map((failure) => `failed: ${Report.line(failure)}`)),
    ...solidity.failures.map((failure) => `failed: ${failure}`),
    // A step that failed and named no test of its own.
    ...outcomes.flatMap(({ ended, step, verdict }) =>
      ended.ok || verdict.failures.length > 0 || (step.name === "solidity" && solidity.failures.length > 0)
        ? []
        : [`failed: ${step.name}, which said at its end:\n${indented(ended.tail)}`]
    ),
    // Where everything is there that a test may need, none is to be left out.
    ...(process.env.CASTELLAN_TEST_COMPLETE === undefined ? [] : skips.map((line) => `failed: ${line}`)),
    // Tests that pass without a word to the service have not tested it.
    ...(held !== null && held.answers === 0 ? ["failed: no answer of the service was seen by any test"] : []),
    ...(stoppedBy === null ? [] : [`failed: stopped by ${stoppedBy} before the end`])
  ]
  for (const line of [...unsteady, ...failed]) console.log(line)
  const passed = verdicts.reduce((sum, verdict) => sum + verdict.passed, solidity.passed)
  const rest = [
    ...(skipped.length > 0 ? [`, ${skipped.length} skipped`] : []),
    ...(unsteady.length > 0 ? [`, ${unsteady.length} unsteady`] : [])
  ]
  console.log(`${passed} passed, ${failed.length} failed${rest.join("")}`)
  Survivors.end(folder)
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  process.exit(failed.length === 0 ? 0 : 1)
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => {
    stoppedBy = signal
    Command.endAll()
  })

const chosenSteps = steps.filter(chosen)
const first: Array<First> = []
const alone = new Set(chosenSteps.filter(({ processors }) => processors === "alone"))
await Schedule.run(
  chosenSteps.map((step, place) => ({
    processors: step.processors,
    run: async () => void first.push(await perform(step, place === 0, place === 0 || alone.has(step)))
  })),
  Math.min(availableParallelism(), mostSideBySide),
  () => stoppedBy !== null
)
const outcomes: Array<Outcome> = []
for (const each of first) outcomes.push(await judged(each))
if (recorded) writeFileSync(Seconds.file, Seconds.text(outcomes.map(({ report }) => report)))
finish(outcomes)
