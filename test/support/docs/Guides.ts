import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import * as Finished from "../process/Finished.js"
import { root } from "../process/Program.js"

/** The commands of a page, block by block, as a reader pastes them. */
export const commands = (page: string): ReadonlyArray<string> =>
  [...readFileSync(join(root, "docs", page), "utf8").matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(
    ([, block = ""]) => block
  )

const shims = (folder: string): Readonly<Record<string, string>> => ({
  npx: `[ "$1" = castellan ] || { echo "npx $1 is not of the guides" >&2; exit 1; }
shift
exec "${process.execPath}" "${join(folder, "package/dist/hosts/cli/castellan.js")}" "$@"`,
  // The package is not in the registry of the machine that tests; what it installs is tried by npm run test:package.
  npm: `[ "$1 $2" = "install castellan" ] || { echo "npm $* is not of the guides" >&2; exit 1; }`
})

/** A folder in which `castellan` and what it depends on are installed: the present source, in the package's layout. */
export const prepare = async (folder: string): Promise<void> => {
  const source = join(root, "src")
  await build({
    entryPoints: readdirSync(source, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts"))
      .map((path) => join(source, path)),
    outdir: join(folder, "package/dist"),
    outbase: source,
    format: "esm",
    target: "node20"
  })
  for (const name of ["contracts", "node_modules", "package.json"])
    symlinkSync(join(root, name), join(folder, "package", name))
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  mkdirSync(join(folder, "bin"))
  for (const [name, text] of Object.entries(shims(folder)))
    writeFileSync(join(folder, "bin", name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
}

const limitSeconds = 400

/** What a guide leaves to its reader, and what the test says for it. */
export type Choices = ReadonlyArray<readonly [written: string, here: string]>

/**
 * Runs the commands of pages in one shell, in which each has to succeed. What they start in the background ends with
 * the shell.
 */
export const run = (
  folder: string,
  pages: ReadonlyArray<string>,
  choices: Choices
): Promise<Finished.Finished> => {
  const text = pages.flatMap((page) => [`echo "## ${page}"`, ...commands(page)]).join("\n")
  for (const [written] of choices)
    if (!text.includes(written)) throw new Error(`no guide says ${written} any more`)
  const script = choices.reduce((said, [written, here]) => said.replaceAll(written, here), text)
  const end = "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"
  // Beyond the test's own limit nothing would end it.
  return Finished.finished(
    "timeout",
    [
      String(limitSeconds),
      "bash",
      "-c",
      ["set -euo pipefail", `export PATH="${join(folder, "bin")}:$PATH"`, end, script].join("\n")
    ],
    folder
  )
}

/** For a message: what was said last. */
export const lastLines = ({ stderr, stdout }: Finished.Finished): string =>
  [stdout, stderr].map((text) => text.split("\n").slice(-25).join("\n")).join("\n---\n")

/** What the service has said of the requests of a guide. */
export const statuses = (stdout: string): ReadonlyArray<string> =>
  [...stdout.matchAll(/"status": (\S+?),?$/gm)].flatMap(([, status = ""]) => [status])
