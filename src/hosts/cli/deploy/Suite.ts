import { Interface, type Signer } from "ethers"
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

/** Addresses of a deployed suite. */
export interface Suite {
  readonly validator: string
  readonly implementation: string
  readonly beacon: string
  readonly ledger: string
  readonly factory: string
  readonly paymaster: string
}

const salt = `0x${"00".repeat(32)}`

/** As many as the constructors of the suite take, oldest first. */
const canonical = Object.values(entryPoints)

/** In the order of deployment; each needs the addresses before it. */
const codes = (keys: SuiteKeys) => {
  const validator = initCode("CustodyValidator")
  const implementation = initCode("Wallet", [...canonical, addressOf(validator, salt)])
  const beacon = initCode("WalletBeacon", [addressOf(implementation, salt), keys.beaconOwner])
  const factory = initCode("WalletFactory", [
    addressOf(beacon, salt),
    keys.deployer,
    keys.owner,
    ...canonical
  ])
  const paymaster = initCode("SponsorPaymaster", [keys.sponsor, keys.owner, ...canonical])
  return { validator, implementation, beacon, ledger: initCode("OperationLedger"), factory, paymaster }
}

/** Where `deploySuite` puts the suite of these keys, on every chain; sends nothing. */
export const suiteOf = (keys: SuiteKeys): Suite => {
  const code = codes(keys)
  return {
    validator: addressOf(code.validator, salt),
    implementation: addressOf(code.implementation, salt),
    beacon: addressOf(code.beacon, salt),
    ledger: addressOf(code.ledger, salt),
    factory: addressOf(code.factory, salt),
    paymaster: addressOf(code.paymaster, salt)
  }
}

/** Deploys what is missing of the suite of these keys. The canonical EntryPoints are taken for granted. */
export const deploySuite = async (payer: Payer, keys: SuiteKeys): Promise<Suite> => {
  const code = codes(keys)
  return {
    validator: await deploy(payer, code.validator, salt),
    implementation: await deploy(payer, code.implementation, salt),
    beacon: await deploy(payer, code.beacon, salt),
    ledger: await deploy(payer, code.ledger, salt),
    factory: await deploy(payer, code.factory, salt),
    paymaster: await deploy(payer, code.paymaster, salt)
  }
}

const paymasterAbi = new Interface(artifact("SponsorPaymaster").abi)

/** Adds `wei` to the paymaster's deposit at each of the canonical EntryPoints. */
export const fundPaymaster = async (payer: Signer, paymaster: string, wei: bigint): Promise<void> => {
  for (const entryPoint of canonical) {
    const data = paymasterAbi.encodeFunctionData("deposit", [entryPoint])
    await (await payer.sendTransaction({ to: paymaster, data, value: wei })).wait()
  }
}
