import type { Signer } from "ethers"
import { deployEntryPoints } from "../../src/hosts/cli/deploy/EntryPoints.js"
import { deploySuite, fundPaymaster, type SuiteKeys, suiteOf } from "../../src/hosts/cli/deploy/Suite.js"

/** docs/contracts.md, as it stands there. */
export const deploy = async (
  payer: Signer,
  { beaconOwner, deployer, owner, sponsor }: SuiteKeys,
  paymaster: string,
  wei: bigint
) => {
  await deployEntryPoints(payer) // the canonical ones, where the chain lacks them
  await deploySuite(payer, { deployer, owner, beaconOwner, sponsor }) // { validator, implementation, beacon, ledger, factory, paymaster }
  suiteOf({ deployer, owner, beaconOwner, sponsor }) // the same addresses, without a chain
  await fundPaymaster(payer, paymaster, wei) // adds to its deposit at each EntryPoint
}
