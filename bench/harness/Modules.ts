import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import ts from "typescript"
import { root } from "../../test/support/process/Program.js"

/** The service's modules as plain JavaScript, one file each. */
export interface Modules {
  readonly folder: string
  readonly remove: () => void
}

const sources = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /(?<!\.d)\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))

/** Takes a second, without a type check. */
export const make = (): Modules => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-modules-"))
  for (const file of [
    ...sources("src"),
    ...["faults/support", "replicas/support", "support/journal"].flatMap((part) =>
      sources(join("test", part))
    )
  ]) {
    const { outputText } = ts.transpileModule(readFileSync(file, "utf8"), {
      fileName: file,
      compilerOptions: {
        target: ts.ScriptTarget.ES2022,
        module: ts.ModuleKind.ESNext,
        verbatimModuleSyntax: true
      }
    })
    const out = join(folder, relative(root, file).replace(/\.ts$/, ".js"))
    mkdirSync(dirname(out), { recursive: true })
    writeFileSync(out, outputText)
  }
  for (const shared of ["node_modules", "contracts"]) symlinkSync(join(root, shared), join(folder, shared))
  writeFileSync(join(folder, "package.json"), '{"type":"module"}')
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
