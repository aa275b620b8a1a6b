import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import ts from "typescript"

/**
 * Long files and long functions are rare, and each says why it is one: the first comment of the file, or the comment of
 * the function's statement, has a sentence that begins with "Long, since".
 */

const root = fileURLToPath(new URL("../..", import.meta.url))

const longestFile = 300
const longestFunction = 80
const reason = /\bLong,[\s*]+since[\s*]+[a-z]/

interface Finding {
  readonly name: string
  readonly lines: number
  readonly hasReason: boolean
}

const linesOf = (source: ts.SourceFile, from: number, to: number): number =>
  source.getLineAndCharacterOfPosition(to).line - source.getLineAndCharacterOfPosition(from).line + 1

/** The comments that stand directly before a statement. */
const commentOf = (source: ts.SourceFile, node: ts.Node): string =>
  source.text.slice(node.getFullStart(), node.getStart(source))

const fileFinding = (path: string, text: string): ReadonlyArray<Finding> => {
  const lines = text.trimEnd().split("\n").length
  const first = /^\/\*\*[\s\S]*?\*\//m.exec(text)?.[0] ?? ""
  return lines > longestFile ? [{ name: path, lines, hasReason: reason.test(first) }] : []
}

/** The outermost long functions: what is long inside of one that gives its reason is covered by it. */
const functionFindings = (path: string, text: string): ReadonlyArray<Finding> => {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest)
  const visit = (node: ts.Node, statement: ts.Node): ReadonlyArray<Finding> => {
    const own = ts.isStatement(node) || ts.isClassElement(node) ? node : statement
    const lines = linesOf(source, node.getStart(source), node.end)
    if (ts.isFunctionLike(node) && lines > longestFunction) {
      const at = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
      return [{ name: `${path}:${at}`, lines, hasReason: reason.test(commentOf(source, own)) }]
    }
    const found: Array<Finding> = []
    ts.forEachChild(node, (child) => {
      found.push(...visit(child, own))
    })
    return found
  }
  return visit(source, source)
}

const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".generated.ts"))
  .map((entry) => {
    const path = join(entry.parentPath, entry.name)
    return { path: path.slice(root.length), text: readFileSync(path, "utf8") }
  })

const unexplained = (findings: ReadonlyArray<Finding>) =>
  findings.filter(({ hasReason }) => !hasReason).map(({ lines, name }) => `${name} (${lines} lines)`)

const filler = (lines: number) => Array.from({ length: lines }, (_, at) => `  call(${at})`).join("\n")

describe("length", () => {
  it(`files of more than ${longestFile} lines say in their first comment why they are long`, () => {
    expect(unexplained(sources.flatMap(({ path, text }) => fileFinding(path, text)))).toEqual([])
  })

  it(`functions of more than ${longestFunction} lines say in their comment why they are long`, () => {
    expect(unexplained(sources.flatMap(({ path, text }) => functionFindings(path, text)))).toEqual([])
  })

  it("is seen where no reason is given", () => {
    const body = `export const run = () => {\n${filler(80)}\n}\n`
    expect(functionFindings("a.ts", body)).toMatchObject([{ lines: 82, hasReason: false }])
    expect(functionFindings("a.ts", `/** Runs. Long, since it is a plant. */\n${body}`)).toMatchObject([
      { hasReason: true }
    ])
    expect(functionFindings("a.ts", `export const run = () => {\n${filler(70)}\n}\n`)).toEqual([])
    expect(
      fileFinding("a.ts", `/** Calls. */\n${filler(300)}\n/** Long, since it is late. */`)
    ).toMatchObject([{ lines: 302, hasReason: false }])
    expect(fileFinding("a.ts", `/** Long, since it is\n * a plant. */\n${filler(300)}`)).toMatchObject([
      { hasReason: true }
    ])
    expect(fileFinding("a.ts", filler(300))).toEqual([])
  })
})
