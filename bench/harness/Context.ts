import { join } from "node:path"
import * as Bundle from "../../test/support/process/Bundle.js"
import * as Modules from "./Modules.js"

/** Environment of a claim. */
export interface Context {
  /** Checks correctness only: least load, one round, writes nothing. */
  readonly quick: boolean
  /** Whether the packages of bench/peers/service are installed. */
  readonly peers: boolean
  /** Folder for CPU profiles of the service; null: none. */
  readonly profiles: string | null
  /** Rounds in which the contenders alternate. */
  readonly rounds: number
  /** The service's modules as plain JavaScript. */
  readonly build: Modules.Modules & {
    /** The service's process, bundled as shipped. */
    readonly main: string
  }
  /** Chooses the figure of a full or a quick run. */
  readonly size: (full: number, quick: number) => number
  readonly say: (line: string) => void
  /** Registers a cleanup at the end of the claim, in reverse order. */
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

/** Builds once for all claims. */
export const open = async (options: Options): Promise<Session> => {
  const modules = Modules.make()
  // A profile distinguishes packages and files, which the bundle merges.
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
