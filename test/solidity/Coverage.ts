import { readFileSync } from "node:fs"
import * as Forge from "./Forge.js"

/** A deployed line that no test reaches, or with a branch that none takes. */
export interface Gap {
  /** Relative to the project's root. */
  readonly file: string
  readonly line: number
  /** The line itself, without its indentation: numbers move. */
  readonly text: string
  readonly what: "line" | "branch"
}

/** A known gap, and the reason why it is acceptable. */
export interface Known {
  readonly file: string
  readonly text: string
  readonly what: "line" | "branch"
  readonly reason: string
}

export const deployed = [
  "CustodyValidator",
  "OperationLedger",
  "SponsorPaymaster",
  "Wallet",
  "WalletBeacon",
  "WalletFactory",
  "WalletProxy"
]

const lcov = "test-output/forge/lcov.info"

/** The gaps of a coverage report in the lcov format. */
export const gaps = (report: string, textOf: (file: string, line: number) => string): ReadonlyArray<Gap> =>
  report.split("end_of_record").flatMap((record) => {
    const file = /^SF:(.*)$/m.exec(record)?.[1] ?? ""
    if (!file.startsWith("contracts/src/")) return []
    const lines = [...record.matchAll(/^DA:(\d+),0$/gm)].map(([, line]) => ["line", Number(line)] as const)
    const branches = [...record.matchAll(/^BRDA:(\d+),\d+,\d+,(?:0|-)$/gm)].map(
      ([, line]) => ["branch", Number(line)] as const
    )
    return [...lines, ...branches].map(([what, line]) => ({ file, line, text: textOf(file, line), what }))
  })

/** Unknown gaps, and known gaps that are now covered. */
export const compare = (found: ReadonlyArray<Gap>, known: ReadonlyArray<Known>) => {
  const same = (a: Gap | Known, b: Gap | Known) => a.file === b.file && a.text === b.text && a.what === b.what
  return {
    fresh: found.filter((gap) => !known.some((entry) => same(gap, entry))),
    stale: known.filter((entry) => !found.some((gap) => same(gap, entry)))
  }
}

const textOf = (file: string, line: number): string =>
  (readFileSync(`${Forge.root}/${file}`, "utf8").split("\n")[line - 1] ?? "").trim()

/** Prints the table and holds it against `uncovered.json`. Returns the exit code. */
export const print = (): number => {
  // The code under test is what forge compiles from the sources, without the optimiser: only there lines are exact.
  const env = Object.fromEntries(deployed.map((name) => [`CASTELLAN_CODE_${name}`, `${name}.sol:${name}`]))
  const run = Forge.run(
    "coverage",
    ["--report", "summary", "--report", "lcov", "--report-file", lcov, "--no-match-coverage", "^test/"],
    { ...env, FOUNDRY_FUZZ_RUNS: "16", FOUNDRY_INVARIANT_RUNS: "2" }
  )
  if (!run.ok) {
    console.error(run.output)
    return 1
  }
  console.log(run.output.slice(run.output.indexOf("╭")))
  const known: ReadonlyArray<Known> = JSON.parse(
    readFileSync(new URL("uncovered.json", import.meta.url), "utf8")
  )
  const found = gaps(readFileSync(`${Forge.root}/${lcov}`, "utf8"), textOf)
  const { fresh, stale } = compare(found, known)
  for (const { file, text, what, reason } of known)
    console.log(`${file}: ${what} not covered: ${text}\n  ${reason}`)
  for (const { file, line, text, what } of fresh)
    console.error(`${file}:${line}: ${what} is not covered: ${text}`)
  for (const { file, text } of stale) console.error(`${file}: uncovered.json names what is covered: ${text}`)
  return fresh.length + stale.length === 0 ? 0 : 1
}
