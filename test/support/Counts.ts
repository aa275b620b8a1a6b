/** What a test run came to. */
export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: ReadonlyArray<{ readonly name: string; readonly reason: string }>
}

interface TestResult {
  readonly fullName: string
  readonly status: string
  readonly meta?: { readonly reason?: string }
}

interface Results {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly assertionResults: ReadonlyArray<TestResult>
  }>
}

/** What was held against the OpenAPI document, of the lines that the test files wrote. */
export interface Exchanges {
  readonly requests: number
  readonly answers: number
}

export const exchanges = (read: () => string): Exchanges => {
  let text = ""
  try {
    text = read()
  } catch {
    return { requests: 0, answers: 0 }
  }
  const lines: ReadonlyArray<Exchanges> = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
  return {
    requests: lines.reduce((sum, { requests }) => sum + requests, 0),
    answers: lines.reduce((sum, { answers }) => sum + answers, 0)
  }
}

export const none: Counts = { passed: 0, failed: 0, skipped: [] }

/** The counts of a vitest JSON report. No report at all is one failure. A skipped test says why in `task.meta.reason`. */
export const read = (report: () => string): Counts => {
  let results: Results
  try {
    results = JSON.parse(report())
  } catch {
    return { ...none, failed: 1 }
  }
  const tests = results.testResults.flatMap(({ assertionResults }) => assertionResults)
  // A file that fails before its first test has no failed test.
  const brokenFiles = results.testResults.filter(
    ({ assertionResults, status }) =>
      status === "failed" && !assertionResults.some((test) => test.status === "failed")
  )
  return {
    passed: tests.filter(({ status }) => status === "passed").length,
    failed: tests.filter(({ status }) => status === "failed").length + brokenFiles.length,
    skipped: tests
      .filter(({ status }) => status !== "passed" && status !== "failed")
      .map(({ fullName, meta }) => ({ name: fullName, reason: meta?.reason ?? "no reason given" }))
  }
}

/** The counts that `npm run test:solidity` wrote. Nothing written is one failure. */
export const readSolidity = (report: () => string): Counts => {
  try {
    const { failed, passed }: { readonly failed: number; readonly passed: number } = JSON.parse(report())
    return { passed, failed, skipped: [] }
  } catch {
    return { ...none, failed: 1 }
  }
}

export const add = (a: Counts, b: Counts): Counts => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: [...a.skipped, ...b.skipped]
})
