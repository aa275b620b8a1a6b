import { spawn } from "node:child_process"
import { mkdirSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import * as Effect from "effect/Effect"

/** Folder below the working folder for npm packages that development needs and castellan does not contain. */
const folder = (): string => join(process.cwd(), ".castellan")

/** Resolvers of packages: castellan's own, the working folder's, and those of `packages`. */
export const resolvers = (): ReadonlyArray<NodeJS.Require> =>
  [import.meta.url, join(process.cwd(), "package.json"), join(folder(), "package.json")].map((from) =>
    createRequire(from)
  )

export const advice = (specs: ReadonlyArray<string>): string => `npm install ${specs.join(" ")}`

const install = (specs: ReadonlyArray<string>): Promise<void> =>
  new Promise((resolve, reject) => {
    mkdirSync(folder(), { recursive: true, mode: 0o700 })
    const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error"]
    const child = spawn("npm", ["install", "--prefix", folder(), ...quiet, ...specs], {
      stdio: ["ignore", "ignore", "pipe"],
      shell: process.platform === "win32"
    })
    let output = ""
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString()
    })
    const failed = (why: string) => reject(new Error(`npm cannot install (${why}): ${advice(specs)}`))
    child.once("error", ({ message }) => failed(message))
    child.once("close", (code) => (code === 0 ? resolve() : failed(output.trim().slice(-300))))
  })

/** Installs absent packages with npm, once for all runs in this folder. */
export const packages = (
  tell: (line: string) => Effect.Effect<void>,
  specs: ReadonlyArray<string>
): Effect.Effect<void, string> =>
  Effect.gen(function* () {
    if (specs.length === 0) return
    yield* tell(`npm installs into .castellan, once: ${specs.join(" ")}`)
    yield* Effect.tryPromise({
      try: () => install(specs),
      catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
    })
  })
