import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import { EntryPointSpec } from "../../../domain/erc4337/entrypoint/EntryPointSpec.js"
import { deploy, type Payer } from "./DeterministicDeployer.js"

export type EntryPointVersion = EntryPoint.Version

export const entryPointVersions = EntryPoint.versions

/** The canonical ERC-4337 EntryPoints: same code, same address on every chain. */
export const entryPoints: Readonly<Record<EntryPointVersion, string>> = EntryPoint.canonical

const creationCode = (version: EntryPointVersion): string => {
  const file = createRequire(import.meta.url).resolve(
    `@account-abstraction/contracts-${version}/artifacts/EntryPoint.json`
  )
  const { bytecode }: { readonly bytecode: string } = JSON.parse(readFileSync(file, "utf8"))
  return bytecode
}

/**
 * Deploys the EntryPoints that are missing, from the bytecode of their authors' npm packages. Rejects when one does
 * not come to stand at its canonical address.
 */
export const deployEntryPoints = async (payer: Payer): Promise<typeof entryPoints> => {
  for (const version of entryPointVersions) {
    const address = await deploy(payer, creationCode(version), EntryPointSpec[version].deploymentSalt)
    if (address !== entryPoints[version])
      throw new Error(`EntryPoint ${version} would stand at ${address}, not at ${entryPoints[version]}`)
  }
  return entryPoints
}
