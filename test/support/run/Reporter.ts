import { appendFileSync } from "node:fs"
import { relative } from "node:path"
import type { SerializedError } from "vitest"
import type { Reporter, TestModule, TestSpecification } from "vitest/node"
import type * as Report from "./Report.js"

/** A property's second line has the seed that repeats it. */
const firstLine = (text: string): string =>
  text
    .split("\n", text.startsWith("Property failed") ? 2 : 1)
    .join(" ")
    .slice(0, 300)

const messages = (errors: ReadonlyArray<{ readonly message: string }> | undefined) =>
  (errors ?? []).map(({ message }) => firstLine(message))

const pathOf = (moduleId: string): string => relative(process.cwd(), moduleId)

/** Tells `test/run.ts` how each test file went, as soon as it is over: a run that is cut short has told what it knew. */
export default class implements Reporter {
  readonly #tell = (line: Report.Line): void => {
    const path = process.env.CASTELLAN_TEST_REPORT
    if (path !== undefined) appendFileSync(path, `${JSON.stringify(line)}\n`)
  }

  onTestRunStart(specifications: ReadonlyArray<TestSpecification>): void {
    this.#tell({ event: "run", files: specifications.map(({ moduleId }) => pathOf(moduleId)) })
  }

  onTestModuleStart({ moduleId }: TestModule): void {
    this.#tell({ event: "start", file: pathOf(moduleId) })
  }

  onTestModuleEnd(module: TestModule): void {
    const tests = [...module.children.allTests()].map((test) => ({ name: test.fullName, ...test.result() }))
    const suites = [...module.children.allSuites()]
    this.#tell({
      event: "end",
      file: pathOf(module.moduleId),
      millis: Math.round(module.diagnostic().collectDuration + module.diagnostic().duration),
      passed: tests.filter(({ state }) => state === "passed").length,
      failed: tests.flatMap(({ errors, name, state }) =>
        state === "failed" ? [{ name, message: messages(errors)[0] ?? "" }] : []
      ),
      skipped: tests.flatMap((test) =>
        test.state === "skipped" ? [{ name: test.name, reason: test.note ?? "no reason given" }] : []
      ),
      broken: [module, ...suites].flatMap((suite) => messages(suite.errors()))
    })
  }

  onTestRunEnd(_: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<SerializedError>): void {
    for (const error of unhandled)
      this.#tell({
        event: "unhandled",
        file: typeof error.VITEST_TEST_PATH === "string" ? pathOf(error.VITEST_TEST_PATH) : null,
        message: firstLine(`${error.name ?? "Error"}: ${error.message}`)
      })
  }
}
