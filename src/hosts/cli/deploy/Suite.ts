import { map } from "effect/Record"
import { Interface, id, type Signer } from "ethers"
import { artifact, initCode } from "./Artifacts.js"
import { addressOf, deploy, type Payer } from "./DeterministicDeployer.js"
import { entryPoints } from "./EntryPoints.js"

/** The keys that a suite is built for. The first three can take wallets away: they are custody keys. */
export interface SuiteKeys {
  /** Signs deployment authorisations of the factory. */
  readonly deployer: string
  /** Owner of the factory and of the paymaster: may replace deployer and sponsor, and take out the paymaster's deposits. */
  readonly owner: string
  /** Owner of the beacon: may replace the code of every wallet. */
  readonly beaconOwner: string
  /** Signs what the paymaster pays for: whoever has it can spend the deposits on gas. */
  readonly sponsor: string
}

/** Addresses of a deployed suite, by the role of each contract, in the order of deployment. */
export type Suite = Readonly<
  Record<"validator" | "implementation" | "beacon" | "ledger" | "factory" | "paymaster", string>
>

const salt = `0x${"00".repeat(32)}`

/** As many as the constructors of the suite take, oldest first. */
const canonical = Object.values(entryPoints)

/** A contract of the suite: what is deployed, and where that puts it. */
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

/** The parts of the suite of these keys; each needs the addresses before it. */
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

/** The factory of one account: on the suite's beacon and of its keys, at an address of its own. */
export const factoryOf = (keys: SuiteKeys, account: string): Part =>
  part(
    "WalletFactory",
    [partsOf(keys).beacon.address, keys.deployer, keys.owner, ...canonical],
    id(`castellan factory of ${account}`)
  )

/** Where `deploySuite` puts the suite of these keys, on every chain; sends nothing. */
export const suiteOf = (keys: SuiteKeys): Suite => map(partsOf(keys), ({ address }) => address)

/** Deploys what is missing of the suite of these keys. The canonical EntryPoints are taken for granted. */
export const deploySuite = async (payer: Payer, keys: SuiteKeys): Promise<Suite> => {
  for (const { initCode, salt } of Object.values(partsOf(keys))) await deploy(payer, initCode, salt)
  return suiteOf(keys)
}

const paymasterAbi = new Interface(artifact("SponsorPaymaster").abi)

/** Adds `wei` to the paymaster's deposit at each of the canonical EntryPoints. */
export const fundPaymaster = async (payer: Signer, paymaster: string, wei: bigint): Promise<void> => {
  for (const entryPoint of canonical) {
    const data = paymasterAbi.encodeFunctionData("deposit", [entryPoint])
    await (await payer.sendTransaction({ to: paymaster, data, value: wei })).wait()
  }
}
