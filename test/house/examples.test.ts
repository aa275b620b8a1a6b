import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Castellan from "../../src/index.js"
import * as PublicApi from "../../tools/PublicApi.js"

/** An expression in the comment of a public function, and its value; null: it only has to evaluate. */
interface Example {
  readonly path: string
  readonly expression: string
  readonly value: string | null
}

const root = new URL("../..", import.meta.url)

const examples = [...PublicApi.sources().values()].flatMap(
  (path): ReadonlyArray<Example> =>
    [
      ...readFileSync(new URL(path, root), "utf8").matchAll(
        /^ \* @example (\S.*(?:\n \* (?!\/\/).*)*)\n(?: \* \/\/ (.*)\n)?/gm
      )
    ].map(([, expression = "", value]) => ({
      path,
      expression: expression.replaceAll("\n * ", "\n"),
      value: value ?? null
    }))
)

const scope = { ...Castellan, Redacted, Result }

const evaluated = (expression: string): unknown =>
  new Function(...Object.keys(scope), `return ${expression}`)(...Object.values(scope))

describe("examples of public functions", () => {
  it.each(examples)("the example of $path evaluates to its value: $expression", ({ expression, value }) => {
    const result = evaluated(expression)
    if (value !== null) expect(result).toEqual(evaluated(value))
  })

  it("examples are found", () => {
    expect(examples.filter(({ value }) => value !== null).length).toBeGreaterThanOrEqual(85)
  })
})
