import { map } from "effect/Record"
import { Interface, id, type Signer } from "ethers"
import { artifact, initCode } from "./Artifacts.js"
import { addressOf, deploy, type Payer } from "./DeterministicDeployer.js"
import { entryPoints } from "./EntryPoints.js"

/** The keys of a suite. The first three are custody keys: they can take wallets away. */
export interface SuiteKeys {
  /** Signs deployment authorisations for the factory. */
  readonly deployer: string
  /** Owns factory and paymaster: can replace deployer and sponsor, and withdraw the paymaster's deposits. */
  readonly owner: string
  /** Owns the beacon: can replace the code of every wallet. */
  readonly beaconOwner: string
  /** Signs sponsorships of the paymaster: its holder can spend the deposits on gas. */
  readonly sponsor: string
}

/** Addresses of a suite by contract role, in the order of deployment. */
export type Suite = Readonly<
  Record<"validator" | "implementation" | "beacon" | "ledger" | "factory" | "paymaster", string>
>

const salt = `0x${"00".repeat(32)}`

/** EntryPoints for the suite's constructors, oldest first. */
const canonical = Object.values(entryPoints)

export interface Part {
  readonly contract: string
  readonly initCode: string
  readonly salt: string
  readonly address: string
}

const part = (contract: string, args: ReadonlyArray<unknown> = [], at = salt): Part => {
  const code = initCode(contract, args)
  return { contract, initCode: code, salt: at, address: addressOf(code, at) }
}

/** The suite's parts for these keys; each part needs the addresses before it. */
export const partsOf = (keys: SuiteKeys): Readonly<Record<keyof Suite, Part>> => {
  const validator = part("CustodyValidator")
  const implementation = part("Wallet", [...canonical, validator.address])
  const beacon = part("WalletBeacon", [implementation.address, keys.beaconOwner])
  return {
    validator,
    implementation,
    beacon,
    ledger: part("OperationLedger"),
    factory: part("WalletFactory", [beacon.address, keys.deployer, keys.owner, ...canonical]),
    paymaster: part("SponsorPaymaster", [keys.sponsor, keys.owner, ...canonical])
  }
}

/** One account's factory, with the suite's beacon and keys, at a separate address. */
export const factoryOf = (keys: SuiteKeys, account: string): Part =>
  part(
    "WalletFactory",
    [partsOf(keys).beacon.address, keys.deployer, keys.owner, ...canonical],
    id(`castellan factory of ${account}`)
  )

/** Addresses of `deploySuite` for these keys, on every chain; sends nothing. */
export const suiteOf = (keys: SuiteKeys): Suite => map(partsOf(keys), ({ address }) => address)

/** Deploys the suite's missing contracts. Requires the canonical EntryPoints. */
export const deploySuite = async (payer: Payer, keys: SuiteKeys): Promise<Suite> => {
  for (const { initCode, salt } of Object.values(partsOf(keys))) await deploy(payer, initCode, salt)
  return suiteOf(keys)
}

const paymasterAbi = new Interface(artifact("SponsorPaymaster").abi)

/** Adds `wei` to the paymaster's deposit at each canonical EntryPoint. */
export const fundPaymaster = async (payer: Signer, paymaster: string, wei: bigint): Promise<void> => {
  for (const entryPoint of canonical) {
    const data = paymasterAbi.encodeFunctionData("deposit", [entryPoint])
    await (await payer.sendTransaction({ to: paymaster, data, value: wei })).wait()
  }
}
