import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { deploy, type Payer } from "./DeterministicDeployer.js"

/** The canonical ERC-4337 EntryPoints: same code, same address on every chain. */
export const entryPoints = {
  "v0.6": "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789",
  "v0.7": "0x0000000071727De22E5E9d8BAf0edAc6f37da032",
  "v0.8": "0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108"
} as const

export type EntryPointVersion = keyof typeof entryPoints

export const entryPointVersions = ["v0.6", "v0.7", "v0.8"] as const satisfies ReadonlyArray<EntryPointVersion>

const salts: Readonly<Record<EntryPointVersion, string>> = {
  "v0.6": `0x${"00".repeat(32)}`,
  "v0.7": "0x90d8084deab30c2a37c45e8d47f49f2f7965183cb6990a98943ef94940681de3",
  "v0.8": "0x0a59dbff790c23c976a548690c27297883cc66b4c67024f9117b0238995e35e9"
}

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
    const address = await deploy(payer, creationCode(version), salts[version])
    if (address !== entryPoints[version])
      throw new Error(`EntryPoint ${version} would stand at ${address}, not at ${entryPoints[version]}`)
  }
  return entryPoints
}
