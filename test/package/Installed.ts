import { spawnSync } from "node:child_process"
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

export const run = (command: string, args: ReadonlyArray<string>, cwd: string) => {
  const { status, stderr, stdout } = spawnSync(command, [...args], { cwd, encoding: "utf8" })
  return { ok: status === 0, stdout, said: `${stdout}${stderr}`.trim() }
}

const need = (...of: Parameters<typeof run>): string => {
  const { ok, said, stdout } = run(...of)
  if (!ok) throw new Error(said)
  return stdout
}

interface Locked {
  readonly dev?: boolean
  readonly optional?: boolean
}

/** What is installed besides castellan itself: places in `node_modules`, nested ones as well. */
const locked = (): ReadonlyArray<readonly [path: string, locked: Locked]> => {
  const lock: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8")
  )
  return Object.entries(lock.packages).filter(([path, { dev }]) => path !== "" && dev !== true)
}

const isOutermost = (path: string): boolean => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path)

/** Of a folder's files and those below it, packages within packages aside. */
const size = (path: string): number =>
  readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
    if (entry.name === "node_modules") return sum
    const at = join(path, entry.name)
    return sum + (entry.isDirectory() ? size(at) : lstatSync(at).size)
  }, 0)

/** What castellan and all that it needs take, optional packages aside. */
export const bytes = (folder: string): number =>
  locked()
    .filter(([, { optional }]) => optional !== true)
    .reduce((sum, [path]) => sum + size(join(root, path)), size(join(folder, "node_modules/castellan")))

/**
 * Packs the package, and unpacks it in the empty folder where npm would put it, beside the packages that it declares: none
 * of those for development.
 */
export const install = (
  folder: string
): { readonly tarball: string; readonly files: ReadonlyArray<{ readonly path: string }> } => {
  const said = need("npm", ["pack", "--json", "--pack-destination", folder], root)
  // What is printed before it is the build's.
  const [{ filename, files }]: [{ filename: string; files: ReadonlyArray<{ path: string }> }] = JSON.parse(
    said.slice(said.indexOf("[\n"))
  )
  const tarball = join(folder, filename)
  const at = join(folder, "node_modules/castellan")
  mkdirSync(at, { recursive: true })
  need("tar", ["-xzf", tarball, "--strip-components=1", "-C", at], folder)
  for (const [path] of locked())
    if (isOutermost(path)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      symlinkSync(join(root, path), join(folder, path))
    }
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "consumer", private: true, type: "module", dependencies: { castellan: "*" } })
  )
  need("npm", ["rebuild", "castellan", "--ignore-scripts"], folder)
  return { tarball, files }
}
