import { execFileSync } from "node:child_process"
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
import { root } from "../process/Program.js"

/** The service and its test hosts as plain JavaScript: a process of it starts three times as fast as from the sources. */
export interface Build {
  /** The service, which ends where its environment says. */
  readonly main: string
  /** The service as one of several replicas. */
  readonly replica: string
  readonly folder: string
  readonly remove: () => void
}

const sources = (from: string, folder: string): ReadonlyArray<string> =>
  readdirSync(join(from, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /(?<!\.d)\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))

/** Of the sources of a commit of this repository; what they import is that of today. */
export const ofCommit = (commit: string): Build => {
  const from = mkdtempSync(join(tmpdir(), "castellan-commit-"))
  try {
    const archive = execFileSync("git", ["archive", commit, "src", "test/support"], {
      cwd: root,
      maxBuffer: 1 << 30
    })
    execFileSync("tar", ["-x", "-C", from], { input: archive })
    return make(from)
  } finally {
    rmSync(from, { recursive: true })
  }
}

/** Types are left to the type check: this takes a second. */
export const make = (from: string = root): Build => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-faults-"))
  for (const file of [
    ...sources(from, "src"),
    ...["faults", "journal", "replicas"].flatMap((part) => sources(from, join("test/support", part)))
  ]) {
    const { outputText } = ts.transpileModule(readFileSync(file, "utf8"), {
      fileName: file,
      compilerOptions: {
        target: ts.ScriptTarget.ES2022,
        module: ts.ModuleKind.ESNext,
        verbatimModuleSyntax: true
      }
    })
    const out = join(folder, relative(from, file).replace(/\.ts$/, ".js"))
    mkdirSync(dirname(out), { recursive: true })
    writeFileSync(out, outputText)
  }
  for (const shared of ["node_modules", "contracts"]) symlinkSync(join(root, shared), join(folder, shared))
  writeFileSync(join(folder, "package.json"), '{"type":"module"}')
  return {
    main: join(folder, "test/support/faults/Host.js"),
    replica: join(folder, "test/support/replicas/Host.js"),
    folder,
    remove: () => rmSync(folder, { recursive: true, force: true })
  }
}
