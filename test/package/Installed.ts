import { spawnSync } from "node:child_process"
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Lockfile from "../support/Lockfile.js"

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

/** The packages npm installs next to castellan: the outermost of node_modules, of this platform. */
const beside = (): ReadonlyArray<string> =>
  [...Lockfile.closure(Lockfile.installed).keys()].filter(
    (path) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && existsSync(join(root, path))
  )

/** Of a folder's files and those below it. */
export const bytes = (path: string): number =>
  readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
    const at = join(path, entry.name)
    return sum + (entry.isDirectory() ? bytes(at) : lstatSync(at).size)
  }, 0)

/** Hard-links the files where both folders are on one disk. */
const copy = (from: string, to: string): void => {
  mkdirSync(dirname(to), { recursive: true })
  if (!run("cp", ["-al", from, to], root).ok) cpSync(from, to, { recursive: true })
}

/**
 * Packs the package and unpacks it in the empty folder where npm would put it, next to its declared packages: no
 * development packages and no opt-in ones.
 */
export const install = (
  folder: string
): { readonly tarball: string; readonly files: ReadonlyArray<{ readonly path: string }> } => {
  const said = need("npm", ["pack", "--json", "--pack-destination", folder], root)
  // The build prints before it.
  const [{ filename, files }]: [{ filename: string; files: ReadonlyArray<{ path: string }> }] = JSON.parse(
    said.slice(said.indexOf("[\n"))
  )
  const tarball = join(folder, filename)
  const at = join(folder, "node_modules/castellan")
  mkdirSync(at, { recursive: true })
  need("tar", ["-xzf", tarball, "--strip-components=1", "-C", at], folder)
  // Packages of another platform are absent.
  for (const path of beside()) if (existsSync(join(root, path))) copy(join(root, path), join(folder, path))
  const effect = Lockfile.manifest.dependencies?.effect
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({
      name: "consumer",
      private: true,
      type: "module",
      dependencies: { castellan: "*", effect }
    })
  )
  need("npm", ["rebuild", "castellan", "--ignore-scripts"], folder)
  return { tarball, files }
}
