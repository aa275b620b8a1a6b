import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { finished } from "../support/process/Finished.js"
import { breaches, lawful } from "./breaches.js"

const root = fileURLToPath(new URL("../..", import.meta.url))
const config = join(root, ".dependency-cruiser.cjs")
const cli = join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs")

interface Violation {
  readonly from: string
  readonly to: string
  readonly rule: { readonly name: string }
}

/** Every violation that dependency-cruiser sees in a tree. */
const violations = async (
  tree: string,
  folders: ReadonlyArray<string>
): Promise<ReadonlyArray<Violation>> => {
  const args = [cli, "--config", config, "--output-type", "json", ...folders]
  const run = await finished(process.execPath, args, tree)
  if (run.stdout === "") throw new Error(`dependency-cruiser said nothing: ${run.stderr.slice(0, 2_000)}`)
  const answer: { readonly summary: { readonly violations: ReadonlyArray<Violation> } } = JSON.parse(
    run.stdout
  )
  return answer.summary.violations
}

const ruleNames: ReadonlyArray<string> = createRequire(import.meta.url)(config).forbidden.map(
  (rule: { readonly name: string }) => rule.name
)

/** The step `imports` of `npm test` applies them to the tree. */
describe("import rules", () => {
  const tree = mkdtempSync(join(tmpdir(), "castellan-imports-"))
  let found: ReadonlyArray<Violation> = []

  beforeAll(async () => {
    for (const file of ["package.json", "tsconfig.json"]) cpSync(join(root, file), join(tree, file))
    symlinkSync(join(root, "node_modules"), join(tree, "node_modules"))
    for (const [path, text] of [...lawful, ...breaches.flatMap(({ files }) => files)]) {
      mkdirSync(dirname(join(tree, path)), { recursive: true })
      writeFileSync(join(tree, path), text)
    }
    found = await violations(tree, ["src", "test"])
  })

  afterAll(() => rmSync(tree, { recursive: true }))

  it("each have a planted breach", () => {
    expect(new Set(breaches.map(({ rule }) => rule))).toEqual(new Set(ruleNames))
  })

  for (const { rule, files, folder } of breaches) {
    const culprit = folder ?? files[0][0]
    it(`${rule} fires on ${culprit}`, () => {
      const fired = found.filter(({ from }) => from === culprit).map((violation) => violation.rule.name)
      expect(fired).toContain(rule)
    })
  }

  it("accept every lawful import", () => {
    const innocents = new Set(lawful.map(([path]) => path))
    expect(found.filter(({ from }) => innocents.has(from))).toEqual([])
  })
})
