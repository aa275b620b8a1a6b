import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))

const specifier = /((?:\bfrom |\bimport\()")([^"]+)(")/g

const packageOf = (name: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name

export interface Reachable extends ReadonlySet<string> {
  /** Packages of which there are declarations among them. */
  readonly packages: ReadonlySet<string>
}

/**
 * The declarations that lead from the given ones. What they say in the types of a package that is not installed is copied to
 * `types` of the folder, so that a program sees the same types without that package.
 */
export const reachable = (
  folder: string,
  entries: ReadonlyArray<string>,
  installed: ReadonlyArray<string>
): Reachable => {
  const packages = new Set<string>()
  /** Where a declaration stands in what is built, by where it is read. */
  const found = new Map(entries.map((path) => [path, path]))
  const add = (from: string, to: string): string => {
    found.set(from, to)
    return to
  }
  const places = (from: string, to: string, name: string): string => {
    if (name.startsWith(".")) {
      const target = join(dirname(from), name.replace(/\.js$/, ".d.ts"))
      add(target, join(dirname(to), name.replace(/\.js$/, ".d.ts")))
      return name
    }
    if (name.startsWith("node:") || installed.includes(packageOf(name))) return name
    const own = packageOf(name)
    packages.add(own)
    const at = add(
      join(root, "node_modules", own, "dist/dts", `${name.slice(own.length + 1)}.d.ts`),
      join(folder, "types", `${name}.d.ts`)
    )
    return relative(dirname(to), at)
      .replace(/\.d\.ts$/, ".js")
      .replace(/^(?!\.)/, "./")
  }
  // A map goes on to what is added while it is read.
  for (const [from, to] of found) {
    const text = readFileSync(from, "utf8").replace(
      specifier,
      (_, before: string, name: string, after: string) => before + places(from, to, name) + after
    )
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, text)
  }
  return Object.assign(new Set(found.values()), { packages })
}
