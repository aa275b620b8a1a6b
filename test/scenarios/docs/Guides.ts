import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Finished from "../../support/process/Finished.js"
import * as Npx from "../../support/process/Npx.js"
import { root } from "../../support/process/Program.js"
import * as Snippets from "./Snippets.js"

/** The pages whose commands tests run in full, in this order. `test/house/snippets.test.ts` uses this list too. */
export const onDevelopmentStack = [
  "start.md",
  "guides/treasury.md",
  "guides/sponsored-gas.md",
  "guides/preview.md",
  "guides/spending-rules.md",
  "guides/payouts.md"
]
export const onAmoy = ["polygon-amoy", "backup", "upgrade", "rotation"].map((name) => `guides/${name}.md`)
export const onBase = ["guides/base-sepolia.md"]
export const onHsm = ["signers/pkcs11.md"]
export const onDatabase = ["accounts.md", "webhooks.md", "watches.md"]

/** The commands of a page by block, as a reader pastes them. */
export const commands = (page: string): ReadonlyArray<string> =>
  Snippets.of(join("docs", page)).flatMap(({ language, text }) => (language === "sh" ? [text] : []))

const onPath = (program: string): string => execFileSync("which", [program], { encoding: "utf8" }).trim()

const answers = (folder: string): string => join(folder, "answers")

/** Refusals by the service, one per line. */
export const refusals = (folder: string): ReadonlyArray<string> =>
  readFileSync(answers(folder), "utf8")
    .split("\n")
    .filter((line) => /"code" ?: ?"/.test(line))

const { version }: { readonly version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const tarball = `castellan-${version}.tgz`

/** A folder with `castellan` from the current sources and its dependencies installed. */
export const prepare = async (folder: string): Promise<void> => {
  const shims = {
    // Parts of a response that a guide discards may explain a failed test.
    curl: `set -o pipefail; "${onPath("curl")}" "$@" | tee -a "${answers(folder)}"`,
    castellan: `exec "${join(folder, "node_modules/.bin/castellan")}" "$@"`,
    // The package is in no registry; npm run test:package tests its installation.
    npm: `if [ "$1" = run ]; then
  shift; [ "$1" = --silent ] && shift
  [ "$1 $2" = "castellan --" ] || { echo "npm run $* is not of the guides" >&2; exit 1; }
  shift 2; exec castellan "$@"
fi
case "$1 $2" in
  "install ./${tarball}" | "install ../${tarball}" | "install ethers" | "install pkcs11js@"*)
    [ -e node_modules ] || ln -s "${join(folder, "node_modules")}" node_modules ;;
  *) echo "npm $* is not of the guides" >&2; exit 1 ;;
esac`
  }
  await Npx.install(folder)
  mkdirSync(join(folder, "bin"))
  for (const [name, text] of Object.entries(shims))
    writeFileSync(join(folder, "bin", name), `#!/usr/bin/env bash\n${text}\n`, { mode: 0o755 })
}

const limitSeconds = 400

/** Placeholders of a guide, and their values in the test. */
export type Choices = ReadonlyArray<readonly [written: string, here: string]>

/** Runs the commands of pages in one shell, where each must succeed. Background jobs end with the shell. */
export const run = (
  folder: string,
  pages: ReadonlyArray<string>,
  choices: Choices
): Promise<Finished.Finished> =>
  perform(folder, pages.flatMap((page) => [`echo "## ${page}"`, ...commands(page)]).join("\n"), choices)

/** Likewise for commands of other places. */
export const perform = (folder: string, text: string, choices: Choices): Promise<Finished.Finished> => {
  for (const [written] of choices)
    if (!text.includes(written)) throw new Error(`no guide says ${written} any more`)
  const script = choices.reduce((said, [written, here]) => said.replaceAll(written, here), text)
  const end = "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"
  // The test's own timeout would not end the shell.
  return Finished.finished(
    "timeout",
    [
      String(limitSeconds),
      "bash",
      "-c",
      ["set -euo pipefail", `export PATH="${join(folder, "bin")}:$PATH"`, end, script].join("\n")
    ],
    folder,
    Npx.environment()
  )
}

/** The last output, for a message. */
export const lastLines = ({ stderr, stdout }: Finished.Finished): string =>
  [stdout, stderr].map((text) => text.split("\n").slice(-25).join("\n")).join("\n---\n")

/** Statuses of the guide's requests. */
export const statuses = (stdout: string): ReadonlyArray<string> =>
  [...stdout.matchAll(/"status": (\S+?),?$/gm)].flatMap(([, status = ""]) => [status])
