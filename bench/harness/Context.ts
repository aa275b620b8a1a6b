import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { root } from "../../test/support/process/Program.js"
import * as Modules from "./Modules.js"

/** What a claim runs in. */
export interface Context {
  /** For correctness only: the least load, one round, nothing is written. */
  readonly quick: boolean
  /** Whether the packages of bench/peers/service are there to be measured against. */
  readonly peers: boolean
  /** Folder for CPU profiles of the service; null: none are taken. */
  readonly profiles: string | null
  /** Rounds in which the contenders alternate. */
  readonly rounds: number
  /** The service as plain JavaScript, as the built package has it. */
  readonly build: Modules.Modules
  /** The full figure, or the one of a quick run. */
  readonly size: (full: number, quick: number) => number
  readonly say: (line: string) => void
  /** Runs when the claim is over, the last one first. */
  readonly defer: (release: () => Promise<void> | void) => void
}

export interface Options {
  readonly quick: boolean
  readonly peers: boolean
  readonly profiles: string | null
}

export interface Session {
  readonly context: (claim: string) => { readonly context: Context; readonly release: () => Promise<void> }
  readonly close: () => void
}

/** The service's process as it ships. */
const bundle = ({ folder }: Modules.Modules): void => {
  const args = [
    join(root, "node_modules/tsx/dist/cli.mjs"),
    join(root, "tools/bundle.ts"),
    join(folder, "src")
  ]
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] })
  if (status !== 0) throw new Error("the service was not bundled")
}

/** The build is made once for all claims. */
export const open = (options: Options): Session => {
  const build = Modules.make()
  // A profile tells packages and files apart, which are one in the bundle.
  if (options.profiles === null) bundle(build)
  return {
    close: build.remove,
    context: (claim) => {
      const releases: Array<() => Promise<void> | void> = []
      return {
        context: {
          ...options,
          build,
          rounds: options.quick ? 1 : 3,
          size: (full, quick) => (options.quick ? quick : full),
          say: (line) => console.log(`  [${claim}] ${line}`),
          defer: (release) => void releases.push(release)
        },
        release: async () => {
          for (const release of releases.splice(0).reverse()) await release()
        }
      }
    }
  }
}
