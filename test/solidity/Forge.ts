import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

/** The project's root: forge runs there, and all paths of its configuration are relative to it. */
export const root = fileURLToPath(new URL("../..", import.meta.url))

export interface Run {
  readonly output: string
  /** Tests were run, and none failed. */
  readonly ok: boolean
  readonly passed: number
  readonly failed: number
  /** For each failed test: its file, its name and its message. */
  readonly failures: ReadonlyArray<string>
  /** Inputs that fuzz tests were called with. */
  readonly fuzzRuns: number
  /** Calls in the sequences after which invariants were checked. */
  readonly invariantCalls: number
}

const sum = (text: string, pattern: RegExp): number =>
  [...text.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0)

/** Forge repeats its failures at the end: each line counts once. */
const failuresOf = (output: string): ReadonlyArray<string> => {
  let file = ""
  const found = output.split("\n").flatMap((line) => {
    file = /^(?:Ran \d+ tests? for|Encountered \d+ failing tests? in) (\S+?):\w+/.exec(line)?.[1] ?? file
    const [, message, test] = /^\[FAIL:? ?(.*)\] (\w+\(.*?\))/.exec(line) ?? []
    return test === undefined ? [] : [`${file} > ${test}: ${(message ?? "").slice(0, 300)}`]
  })
  return [...new Set(found)]
}

/** The counts of forge's own report. A report without its last line is of a run that broke off. */
export const read = (output: string): Run => {
  const last = /^Ran \d+ test suites? in [^\n]*: (\d+) tests passed, (\d+) failed, 0 skipped/m.exec(output)
  const passed = Number(last?.[1] ?? 0)
  const failed = Number(last?.[2] ?? 0)
  return {
    output,
    ok: passed > 0 && failed === 0,
    passed,
    failed,
    failures: failuresOf(output),
    fuzzRuns: sum(output, /^\[PASS\] \w+\([^\n]*\(runs: (\d+), μ/gm),
    invariantCalls: sum(output, /^\[PASS\] \w+\([^\n]*calls: (\d+), reverts/gm)
  }
}

/**
 * Runs `forge COMMAND` over the tests of this folder and waits for its end. The result comes from the report: npm's
 * wrapper of forge exits with 0 whatever forge's exit code.
 */
export const run = (
  command: "test" | "coverage",
  args: ReadonlyArray<string> = [],
  env: Readonly<Record<string, string>> = {}
): Run => {
  const { stderr, stdout } = spawnSync(`${root}/node_modules/.bin/forge`, [command, ...args], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, FOUNDRY_CONFIG: `${root}/test/solidity/foundry.toml`, NO_COLOR: "1", ...env }
  })
  return read(`${stdout}${stderr}`)
}
