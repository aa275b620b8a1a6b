import { join } from "node:path"
import * as Bundle from "../../test/support/process/Bundle.js"
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
  /** The modules of the service as plain JavaScript. */
  readonly build: Modules.Modules & {
    /** The service's process, in a few files as it ships. */
    readonly main: string
  }
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

/** The build is made once for all claims. */
export const open = async (options: Options): Promise<Session> => {
  const modules = Modules.make()
  // A profile tells packages and files apart, which are one in the bundle.
  const main =
    options.profiles === null
      ? await Bundle.of("src/hosts/node/main.ts")
      : join(modules.folder, "src/hosts/node/main.js")
  const build = { ...modules, main }
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
