import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Bundle from "../process/Bundle.js"

/** The service in the hosts of these tests, as its process ships: in a few files. */
export interface Build {
  /** The service, which ends where its environment says. */
  readonly main: string
  /** The service as one of several replicas. */
  readonly replica: string
  /** For the files of those who start it. */
  readonly folder: string
  readonly remove: () => void
}

const main = "test/support/faults/Host.ts"
const replica = "test/support/replicas/Host.ts"

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

/** Of the sources of a commit of this repository; what they import is that of today. */
export const ofCommit = async (commit: string): Promise<Build> => {
  const { folder, remove } = temporary()
  const [sources, bundle] = [join(folder, "sources"), join(folder, "bundle")]
  mkdirSync(sources)
  const archive = execFileSync("git", ["archive", commit, "src", "test/support"], {
    cwd: Bundle.root,
    maxBuffer: 1 << 30
  })
  execFileSync("tar", ["-x", "-C", sources], { input: archive })
  await Bundle.into(bundle, sources, [main, replica])
  return { main: Bundle.place(bundle, main), replica: Bundle.place(bundle, replica), folder, remove }
}
