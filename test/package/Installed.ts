import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
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
  const lock: { readonly packages: Readonly<Record<string, { readonly dev?: boolean }>> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8")
  )
  for (const [path, { dev }] of Object.entries(lock.packages))
    if (/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && dev !== true) {
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
