import { relative } from "node:path"
import type { SerializedError } from "vitest"
import type { Reporter, TestModule } from "vitest/node"
import * as Tools from "./Tools.js"

/** The end of a run: a line for each suite that was left out, with its reason, and the counts in the last line. */
export default class implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<SerializedError>): void {
    const files = Tools.leftOut()
    for (const { files: left, why } of files) console.log(`left out: ${left}: ${why}`)
    const counts = { passed: 0, failed: unhandled.length, skipped: files.length }
    const tests = new Map<string, number>()
    for (const module of modules) {
      const suites = [module, ...module.children.allSuites()]
      counts.failed += suites.filter((suite) => suite.errors().length > 0).length
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === "passed") counts.passed += 1
        else if (result.state === "failed") counts.failed += 1
        else {
          counts.skipped += 1
          const why = (result.state === "skipped" && result.note) || test.name
          const line = `left out: ${relative(process.cwd(), module.moduleId)}: ${why}`
          tests.set(line, (tests.get(line) ?? 0) + 1)
        }
      }
    }
    for (const [line, count] of tests) console.log(count === 1 ? line : `${line} (${count} tests)`)
    // After what the other reporters say.
    process.once("exit", () =>
      console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
    )
  }
}
