import { spawn } from "node:child_process"
import { mkdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import { deploy, type Payer } from "./DeterministicDeployer.js"

export type EntryPointVersion = EntryPoint.Version

export const entryPointVersions = EntryPoint.versions

/** The canonical ERC-4337 EntryPoints, with the same code and address on every chain. */
export const entryPoints: Readonly<Record<EntryPointVersion, string>> = EntryPoint.canonical

/** The authors' npm package of an EntryPoint. */
export const packageOf = (version: EntryPointVersion): string => `@account-abstraction/contracts-${version}`

/** Folder for the packages of `install`, below the working folder. */
const ownFolder = ".castellan"

/**
 * An EntryPoint as compiled by its authors, from a package installed here or in the working folder; null when absent. Their
 * sources are under the GPL, so castellan contains no copy.
 */
export const compiled = (
  version: EntryPointVersion
): { readonly bytecode: string; readonly deployedBytecode: string } | null => {
  for (const from of [
    import.meta.url,
    join(process.cwd(), "package.json"),
    join(process.cwd(), ownFolder, "package.json")
  ])
    try {
      const file = createRequire(from).resolve(`${packageOf(version)}/artifacts/EntryPoint.json`)
      return JSON.parse(readFileSync(file, "utf8"))
    } catch {}
  return null
}

const specOf = (version: EntryPointVersion): string =>
  `${packageOf(version)}@npm:@account-abstraction/contracts@${version.slice(1)}.0`

/** Command that installs missing packages. */
export const advice = (versions: ReadonlyArray<EntryPointVersion>): string =>
  `npm install ${versions.map(specOf).join(" ")}`

/** Installs the packages with npm, once for all runs, into castellan's folder below the working folder. */
const install = (versions: ReadonlyArray<EntryPointVersion>): Promise<void> =>
  new Promise((resolve, reject) => {
    const prefix = join(process.cwd(), ownFolder)
    mkdirSync(prefix, { recursive: true, mode: 0o700 })
    const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error"]
    const child = spawn("npm", ["install", "--prefix", prefix, ...quiet, ...versions.map(specOf)], {
      stdio: ["ignore", "ignore", "pipe"],
      shell: process.platform === "win32"
    })
    let said = ""
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString()
    })
    const failed = (why: string) =>
      reject(new Error(`npm cannot install the EntryPoints (${why}): ${advice(versions)}`))
    child.once("error", ({ message }) => failed(message))
    child.once("close", (code) => (code === 0 ? resolve() : failed(said.trim().slice(-300))))
  })

/** For a development chain: installs missing EntryPoint packages with npm. */
export const bring = (tell: (line: string) => Effect.Effect<void>): Effect.Effect<void, string> =>
  Effect.gen(function* () {
    const absent = entryPointVersions.filter((version) => compiled(version) === null)
    if (absent.length === 0) return
    yield* tell("the EntryPoints are in their authors' npm packages: npm puts them into .castellan, once")
    yield* Effect.tryPromise({
      try: () => install(absent),
      catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
    })
  })

export const saltOf = (version: EntryPointVersion): string => EntryPointSpec[version].deploymentSalt

/** Deploys missing EntryPoints from their authors' bytecode. Rejects when one does not get its canonical address. */
export const deployEntryPoints = async (payer: Payer): Promise<typeof entryPoints> => {
  for (const version of entryPointVersions) {
    const code = compiled(version)
    if (code === null) throw new Error(`EntryPoint ${version} is not at hand: ${advice([version])}`)
    const address = await deploy(payer, code.bytecode, saltOf(version))
    if (address !== entryPoints[version])
      throw new Error(`EntryPoint ${version} would stand at ${address}, not at ${entryPoints[version]}`)
  }
  return entryPoints
}
