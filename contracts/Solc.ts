import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

interface Solc {
  readonly compile: (
    input: string,
    callbacks: { readonly import: (path: string) => { contents: string } | { error: string } }
  ) => string
}

const require = createRequire(import.meta.url)
const here = dirname(fileURLToPath(import.meta.url))

/** Replacement contents of files, by name (`src/...`): tests compile the suite with a planted fault. */
export type Patches = ReadonlyMap<string, string>

export const read = (name: string, patches: Patches): string =>
  patches.get(name) ?? readFileSync(join(here, name), "utf8")

const readImport = (patches: Patches) => (path: string) => {
  try {
    if (path.startsWith("src/")) return { contents: read(path, patches) }
    return { contents: readFileSync(require.resolve(path), "utf8") }
  } catch (cause) {
    return { error: `${path} cannot be read: ${String(cause)}` }
  }
}

/** solc's standard JSON output for these sources (`src/...`) and settings. */
export const solve = (
  names: ReadonlyArray<string>,
  settings: Readonly<Record<string, unknown>>,
  patches: Patches = new Map()
): string => {
  const solc: Solc = require("solc")
  const sources = Object.fromEntries(names.map((name) => [name, { content: read(name, patches) }]))
  const input = JSON.stringify({
    language: "Solidity",
    sources,
    settings: { evmVersion: "cancun", ...settings }
  })
  return solc.compile(input, { import: readImport(patches) })
}
