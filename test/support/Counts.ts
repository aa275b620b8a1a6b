import { relative } from "node:path"
import type { SerializedError } from "vitest"
import type { Reporter, TestModule } from "vitest/node"
import * as Tools from "./Tools.js"

const place = (module: TestModule) => relative(process.cwd(), module.moduleId)

/**
 * The end of a run: a line for each suite that was left out, with its reason, a line for each failure, and the counts in
 * the last line.
 */
export default class implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<SerializedError>): void {
    const files = Tools.leftOut()
    for (const { files: left, why } of files) console.log(`left out: ${left}: ${why}`)
    const counts = { passed: 0, failed: unhandled.length, skipped: files.length }
    const failures = unhandled.map(({ message }) => `outside of tests: ${message}`)
    const tests = new Map<string, number>()
    for (const module of modules) {
      const suites = [module, ...module.children.allSuites()]
      const broken = suites.flatMap((suite) => (suite.errors().length > 0 ? [suite.errors()] : []))
      counts.failed += broken.length
      for (const errors of broken)
        for (const { message } of errors) failures.push(`${place(module)}: ${message}`)
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === "passed") counts.passed += 1
        else if (result.state === "failed") {
          counts.failed += 1
          for (const { message } of result.errors)
            failures.push(`${place(module)}: ${test.fullName}: ${message}`)
        } else {
          counts.skipped += 1
          const why = (result.state === "skipped" && result.note) || test.name
          const line = `left out: ${place(module)}: ${why}`
          tests.set(line, (tests.get(line) ?? 0) + 1)
        }
      }
    }
    for (const [line, count] of tests) console.log(count === 1 ? line : `${line} (${count} tests)`)
    // After what the other reporters say.
    process.once("exit", () => {
      for (const failure of failures) console.log(`failed: ${failure.replaceAll("\n", " ").slice(0, 1000)}`)
      console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
    })
  }
}
