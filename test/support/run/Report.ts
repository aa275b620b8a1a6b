/** What the reporter writes, a JSON text a line. */
export type Line =
  | { readonly event: "run"; readonly files: ReadonlyArray<string> }
  | { readonly event: "start"; readonly file: string }
  | ({ readonly event: "end" } & FileResult)
  | { readonly event: "unhandled"; readonly file: string | null; readonly message: string }

export interface FileResult {
  readonly file: string
  readonly millis: number
  readonly passed: number
  readonly failed: ReadonlyArray<{ readonly name: string; readonly message: string }>
  readonly skipped: ReadonlyArray<{ readonly name: string; readonly reason: string }>
  /** What failed outside of a test: a hook, or the file itself. */
  readonly broken: ReadonlyArray<string>
}

/** A test that failed; without a test, what surrounds the tests. `file` is null where nobody knows it. */
export interface Failure {
  readonly file: string | null
  readonly test: string | null
  readonly message: string
}

/** How a run of Vitest went. */
export interface Report {
  readonly results: ReadonlyArray<FileResult>
  readonly unhandled: ReadonlyArray<Failure>
  /** Files of which no end is known, those that had begun first. */
  readonly unfinished: ReadonlyArray<string>
}

export const none: Report = { results: [], unhandled: [], unfinished: [] }

export const read = (text: string): Report => {
  const lines: ReadonlyArray<Line> = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
  const results = lines.flatMap((line) => (line.event === "end" ? [line] : []))
  const began = lines.flatMap((line) => (line.event === "start" ? [line.file] : []))
  const planned = lines.flatMap((line) => (line.event === "run" ? line.files : []))
  const over = new Set(results.map(({ file }) => file))
  return {
    results,
    unhandled: lines.flatMap((line) =>
      line.event === "unhandled" ? [{ file: line.file, test: null, message: line.message }] : []
    ),
    unfinished: [...new Set([...began, ...planned])].filter((file) => !over.has(file))
  }
}

const unfinished = (file: string): Failure => ({ file, test: null, message: "did not come to its end" })

const failures = (report: Report): ReadonlyArray<Failure> => [
  ...report.results.flatMap(({ broken, failed, file }) => [
    ...failed.map(({ message, name }) => ({ file, test: name, message })),
    ...broken.map((message) => ({ file, test: null, message }))
  ]),
  ...report.unhandled,
  ...report.unfinished.map(unfinished)
]

/** More files than these do not fail by chance. */
export const mostByChance = 12

/** The files that are run once more, each alone. */
export const toRepeat = (report: Report): ReadonlyArray<string> => {
  const files = [...new Set(failures(report).flatMap(({ file }) => file ?? []))]
  return files.length > mostByChance ? [] : files
}

/** Whether something failed of which nobody knows the file, beside what may fail by chance: the whole run is to be repeated. */
export const isToRepeatWhole = (report: Report): boolean => {
  const files = failures(report).map(({ file }) => file)
  return files.includes(null) && new Set(files).size <= mostByChance + 1
}

/** How the second run of one file went; `ok` is what the process said at its end. */
export interface Repeated {
  readonly file: string
  readonly report: Report
  readonly ok: boolean
}

/** What a run with its repetitions came to. */
export interface Verdict {
  readonly passed: number
  readonly skipped: FileResult["skipped"]
  readonly failures: ReadonlyArray<Failure>
  /** What failed in the run and not when its file ran alone. */
  readonly unsteady: ReadonlyArray<Failure>
}

const placeOf = ({ file, test }: Failure): string => JSON.stringify([file, test])

/** A file that was run again counts as it went then. */
export const verdict = (first: Report, again: ReadonlyArray<Repeated>): Verdict => {
  const repeated = new Set<string | null>(again.map(({ file }) => file))
  const results = [
    ...first.results.filter(({ file }) => !repeated.has(file)),
    ...again.flatMap(({ report }) => report.results)
  ]
  const lasting = again.flatMap(({ file, ok, report }) => {
    const found = failures(report)
    return found.length > 0 || ok ? found : [unfinished(file)]
  })
  const places = new Set(lasting.map(placeOf))
  return {
    passed: results.reduce((sum, { passed }) => sum + passed, 0),
    // A hook that fails skips its tests; nobody wants them skipped.
    skipped: results.flatMap(({ broken, skipped }) => (broken.length === 0 ? skipped : [])),
    failures: [...failures(first).filter(({ file }) => !repeated.has(file)), ...lasting],
    unsteady: failures(first).filter((failure) => repeated.has(failure.file) && !places.has(placeOf(failure)))
  }
}

/** In one line where it failed, and what it said. */
export const line = ({ file, message, test }: Failure): string =>
  `${[file ?? "in an unknown file", test].filter((part) => part !== null).join(" > ")}: ${message}`

export const slowest = (report: Report, count: number): ReadonlyArray<string> =>
  [...report.results]
    .sort((a, b) => b.millis - a.millis)
    .slice(0, count)
    .map(({ file, millis }) => `${(millis / 1_000).toFixed(1).padStart(6)} s ${file}`)
