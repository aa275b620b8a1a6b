import { HDNodeWallet, Mnemonic } from "ethers"

/** The test phrase that everybody knows: anvil funds its first ten keys. Worthless anywhere else. */
const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk")

const key = (index: number): HDNodeWallet => HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${index}`)

/** One key per role, so that no right comes by accident. The faucet is no EOA of the service. */
export const devKeys = {
  faucet: key(0),
  signer: key(1),
  serviceEoa: key(2),
  deployer: key(3),
  factoryOwner: key(4),
  beaconOwner: key(5),
  sponsor: key(6)
} as const
