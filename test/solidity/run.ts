import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import * as Coverage from "./Coverage.js"
import * as Forge from "./Forge.js"
import * as Mutants from "./Mutants.js"

/**
 * `npm run test:solidity`: the suite's tests in Solidity, then the same invariants over mutants of the suite, which must
 * break them. `--mutants` runs only the mutants, all or the named ones. `--coverage` prints the tests' coverage. `--long`
 * runs more inputs with another seed. Other arguments go to forge without the mutants, e.g.
 * `--match-path "test/solidity/Wallet/*" -vvvv`.
 */
const [first, ...others] = process.argv.slice(2)

const seconds = (began: number): string => ((performance.now() - began) / 1_000).toFixed(1)

const long = () => ({
  FOUNDRY_FUZZ_RUNS: "5000",
  FOUNDRY_FUZZ_SEED: `0x${randomBytes(8).toString("hex")}`,
  FOUNDRY_INVARIANT_RUNS: "500",
  FOUNDRY_INVARIANT_DEPTH: "400"
})

/** The whole output when something failed, otherwise a line for each suite. */
const report = (run: Forge.Run): string =>
  run.ok
    ? [...run.output.matchAll(/^Ran (\d+) tests? for test\/solidity\/(\S+):\w+/gm)]
        .map(([, tests = "", path = ""]) => `${tests.padStart(4)} ${path}`)
        .sort((a, b) => (a.slice(5) < b.slice(5) ? -1 : 1))
        .join("\n")
    : run.output

const tests = (env: Readonly<Record<string, string>>) => {
  const began = performance.now()
  for (const [name, value] of Object.entries(env)) console.log(`${name}=${value}`)
  const run = Forge.run("test", [], env)
  console.log(report(run))
  console.log(
    `${run.passed} tests passed, ${run.failed} failed; ${run.fuzzRuns} fuzz runs, ${run.invariantCalls} calls, ${seconds(began)} s`
  )
  return run
}

const mutants = (names: ReadonlyArray<string> = []) => {
  const began = performance.now()
  const outcomes = Mutants.run(names)
  for (const { name, caught, why } of outcomes) console.log(`${caught ? "caught" : "MISSED"} ${name}: ${why}`)
  const missed = outcomes.filter(({ caught }) => !caught)
  const caught = outcomes.length - missed.length
  console.log(`${caught} of ${outcomes.length} mutants caught, ${seconds(began)} s`)
  return { caught, missed: missed.map(({ name, why }) => `mutant "${name}": ${why}`) }
}

const all = (env: Readonly<Record<string, string>>): number => {
  const run = tests(env)
  const { caught, missed } = run.ok ? mutants() : { caught: 0, missed: [] }
  const unnamed = run.ok || run.failures.length > 0 ? [] : ["forge did not finish"]
  const failures = [...run.failures, ...unnamed, ...missed]
  const file = process.env.CASTELLAN_SOLIDITY_RESULTS
  if (file !== undefined) writeFileSync(file, JSON.stringify({ passed: run.passed + caught, failures }))
  return failures.length === 0 ? 0 : 1
}

const passedOn = (args: ReadonlyArray<string>): number => {
  const run = Forge.run("test", args)
  console.log(run.output)
  return run.ok ? 0 : 1
}

if (first === undefined) process.exitCode = all({})
else if (first === "--long" && others.length === 0) process.exitCode = all(long())
else if (first === "--mutants") process.exitCode = mutants(others).missed.length === 0 ? 0 : 1
else if (first === "--coverage" && others.length === 0) process.exitCode = Coverage.print()
else process.exitCode = passedOn([first, ...others])
