import { HDNodeWallet, Mnemonic } from "ethers"

/** The public test mnemonic: anvil funds its first ten keys. Worthless elsewhere. */
const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk")

const key = (index: number): HDNodeWallet => HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${index}`)

/** One key per role, so that no role gains rights by accident. The service does not use the faucet. */
export const devKeys = {
  faucet: key(0),
  signer: key(1),
  serviceEoa: key(2),
  deployer: key(3),
  factoryOwner: key(4),
  beaconOwner: key(5),
  sponsor: key(6)
} as const
