import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Bundle from "../../support/process/Bundle.js"

/** The service in the hosts of these tests, as its process ships: in a few files. */
export interface Build {
  /** The service, which ends where its environment says. */
  readonly main: string
  /** Entry point of a process in its first life. Default: `main`. */
  readonly earlier?: string
  /** The service as one of several replicas. */
  readonly replica: string
  /** For the files of the processes that start it. */
  readonly folder: string
  readonly remove: () => void
}

const main = "test/faults/support/Host.ts"
const replica = "test/replicas/support/Host.ts"

const temporary = (): Pick<Build, "folder" | "remove"> => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-faults-"))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Of the present sources. */
export const make = async (): Promise<Build> => ({
  main: await Bundle.of(main),
  replica: await Bundle.of(replica),
  ...temporary()
})

/** Today's packages where the commit has the same, otherwise its own: they are installed for it. */
const packages = (sources: string): void => {
  const lock = (folder: string) => readFileSync(join(folder, "package-lock.json"), "utf8")
  if (lock(sources) === lock(Bundle.root)) {
    symlinkSync(join(Bundle.root, "node_modules"), join(sources, "node_modules"))
    return
  }
  // Native parts are optional, or are those of SQLite: replicas have PostgreSQL.
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: sources,
    stdio: ["ignore", "ignore", "inherit"]
  })
}

/** Of a commit of this repository, with its packages. */
export const ofCommit = async (commit: string): Promise<Build> => {
  const { folder, remove } = temporary()
  try {
    const sources = join(folder, "sources")
    mkdirSync(sources)
    const archive = execFileSync("git", ["archive", commit], { cwd: Bundle.root, maxBuffer: 1 << 30 })
    execFileSync("tar", ["-x", "-C", sources], { input: archive })
    packages(sources)
    // Node looks for a bundle's external packages in the folders above it.
    const bundle = join(sources, "bundle")
    await Bundle.into(bundle, sources, [main, replica])
    return { main: Bundle.place(bundle, main), replica: Bundle.place(bundle, replica), folder, remove }
  } catch (error) {
    remove()
    throw error
  }
}
