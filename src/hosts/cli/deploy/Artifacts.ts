import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Interface, type InterfaceAbi } from "ethers"

/** A contract in contracts/artifacts, written by `npm run contracts`. */
interface Artifact {
  readonly contractName: string
  readonly abi: InterfaceAbi
  readonly bytecode: string
  readonly deployedBytecode: string
}

/** Reads a committed artifact; throws when there is none. */
export const artifact = (contractName: string): Artifact => {
  const file = new URL(`../../../../contracts/artifacts/${contractName}.json`, import.meta.url)
  return JSON.parse(readFileSync(fileURLToPath(file), "utf8"))
}

/** Creation code followed by the ABI-encoded constructor arguments. */
export const initCode = (contractName: string, args: ReadonlyArray<unknown> = []): string => {
  const { abi, bytecode } = artifact(contractName)
  return bytecode + new Interface(abi).encodeDeploy(args).slice(2)
}
