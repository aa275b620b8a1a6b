import { readFileSync } from "node:fs"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import * as Bring from "../support/Bring.js"
import { deploy, type Payer } from "./DeterministicDeployer.js"

export type EntryPointVersion = EntryPoint.Version

export const entryPointVersions = EntryPoint.versions

/** The canonical ERC-4337 EntryPoints, with the same code and address on every chain. */
export const entryPoints: Readonly<Record<EntryPointVersion, string>> = EntryPoint.canonical

/** The authors' npm package of an EntryPoint. */
export const packageOf = (version: EntryPointVersion): string => `@account-abstraction/contracts-${version}`

/**
 * An EntryPoint as compiled by its authors, from an installed package; null when absent. Their
 * sources are under the GPL, so castellan contains no copy.
 */
export const compiled = (
  version: EntryPointVersion
): { readonly bytecode: string; readonly deployedBytecode: string } | null => {
  for (const require of Bring.resolvers())
    try {
      const file = require.resolve(`${packageOf(version)}/artifacts/EntryPoint.json`)
      return JSON.parse(readFileSync(file, "utf8"))
    } catch {}
  return null
}

const specOf = (version: EntryPointVersion): string =>
  `${packageOf(version)}@npm:@account-abstraction/contracts@${version.slice(1)}.0`

/** npm specifiers of the packages that are not installed. */
export const absent = (): ReadonlyArray<string> =>
  entryPointVersions.filter((version) => compiled(version) === null).map(specOf)

export const advice = (version: EntryPointVersion): string => Bring.advice([specOf(version)])

export const saltOf = (version: EntryPointVersion): string => EntryPointSpec[version].deploymentSalt

/** Deploys missing EntryPoints from their authors' bytecode. Rejects when one does not get its canonical address. */
export const deployEntryPoints = async (payer: Payer): Promise<typeof entryPoints> => {
  for (const version of entryPointVersions) {
    const code = compiled(version)
    if (code === null) throw new Error(`EntryPoint ${version} is not at hand: ${advice(version)}`)
    const address = await deploy(payer, code.bytecode, saltOf(version))
    if (address !== entryPoints[version])
      throw new Error(`EntryPoint ${version} would stand at ${address}, not at ${entryPoints[version]}`)
  }
  return entryPoints
}
