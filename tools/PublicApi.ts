import { readFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"

const root = fileURLToPath(new URL("../", import.meta.url))

/** An import path of the package. */
export interface Entry {
  /** `castellan/Address` */
  readonly path: string
  /** Its source: `src/domain/primitives/Address.ts` */
  readonly source: string
  /** Names of values, functions or namespaces, possibly also types. */
  readonly values: ReadonlyArray<string>
  readonly types: ReadonlyArray<string>
}

/** Exports of package.json: source file by import path. */
export const sources = (): ReadonlyMap<string, string> => {
  const manifest: { readonly name: string; readonly exports: Readonly<Record<string, string>> } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8")
  )
  return new Map(
    Object.entries(manifest.exports).flatMap(([path, target]) =>
      target.startsWith("./dist/")
        ? [[join(manifest.name, path), target.replace("./dist/", "src/").replace(/\.js$/, ".ts")]]
        : []
    )
  )
}

/** Resolves only the package's own files: their exports do not depend on others. */
const host = (options: ts.CompilerOptions): ts.CompilerHost => ({
  ...ts.createCompilerHost(options),
  resolveModuleNameLiterals: (literals, containing) =>
    literals.map(({ text }) => ({
      resolvedModule: text.startsWith(".")
        ? {
            resolvedFileName: resolve(dirname(containing), text.replace(/\.js$/, ".ts")),
            extension: ts.Extension.Ts
          }
        : undefined
    }))
})

/** Every entry with its exported names, sorted. */
export const entries = (): ReadonlyArray<Entry> => {
  const files = sources()
  const options: ts.CompilerOptions = {
    noLib: true,
    types: [],
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022
  }
  const program = ts.createProgram(
    [...files.values()].map((path) => join(root, path)),
    options,
    host(options)
  )
  const checker = program.getTypeChecker()
  const meaning = (symbol: ts.Symbol): ts.SymbolFlags =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol).flags : symbol.flags
  return [...files].map(([path, source]) => {
    const file = program.getSourceFile(join(root, source))
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
    if (module === undefined) throw new Error(`${source} is exported but is not a module`)
    const symbols = checker.getExportsOfModule(module)
    const named = (isValue: boolean) =>
      symbols
        .filter((symbol) => ((meaning(symbol) & ts.SymbolFlags.Value) !== 0) === isValue)
        .map(({ name }) => name)
        .sort()
    return { path, source, values: named(true), types: named(false) }
  })
}

const listed = (names: ReadonlyArray<string>): string => names.map((name) => `\`${name}\``).join(", ")

const namesOf = ({ path, types, values }: Entry): string =>
  types.length === 0 && values.length === 1 && path.endsWith(`/${values[0]}`)
    ? "the last word of the path | "
    : `${listed(values)} | ${listed(types)}`

export const page = (all: ReadonlyArray<Entry>): string =>
  [
    "# Public API",
    "",
    "Every import path of the package, with its names (generated: `npm run docs`). Other modules are internal and cannot be imported. A removed name, or a changed meaning, is a breaking change and stands in the changelog.",
    "",
    "| path | values | types |",
    "|---|---|---|",
    ...[...Map.groupBy(all, namesOf)].map(
      ([names, same]) => `| ${listed(same.map(({ path }) => path))} | ${names} |`
    ),
    ""
  ].join("\n")
