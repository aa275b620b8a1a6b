import { readFileSync } from "node:fs"
import type { Report } from "./Report.js"

/** Seconds that the longer test files took when `npm test -- --record` was run last, from the root of the repository. */
export const file = "test/support/run/seconds.json"

const fewest = 5

export const read = (): Readonly<Record<string, number>> => JSON.parse(readFileSync(file, "utf8"))

export const text = (reports: ReadonlyArray<Report>): string => {
  const long = reports
    .flatMap(({ results }) => results)
    .map(({ file: name, millis }) => [name, Math.round(millis / 1_000)] as const)
    .filter(([, count]) => count >= fewest)
    .sort(([, one], [, other]) => other - one)
  return `${JSON.stringify(Object.fromEntries(long), null, 2)}\n`
}
