import {
  concat,
  getCreate2Address,
  type JsonRpcProvider,
  keccak256,
  type Signer,
  type TransactionRequest
} from "ethers"
import * as Keyless from "./Keyless.js"

/** Who pays: a signer with a provider, or the first unlocked account of a development node. */
export type Payer = Signer | JsonRpcProvider

/**
 * The keyless CREATE2 deployer that stands at this address on nearly every chain, anvil included. Its calldata is
 * salt (32 bytes) ++ creation code with constructor arguments.
 */
export const deterministicDeployer = Keyless.deterministicDeployer.address

/** Where `deploy` puts this code. */
export const addressOf = (initCode: string, salt: string): string =>
  getCreate2Address(deterministicDeployer, salt, keccak256(initCode))

const toSigner = async (payer: Payer): Promise<Signer> =>
  "getSigner" in payer ? await payer.getSigner(0) : payer

/**
 * Puts the code at its deterministic address and returns that address; sends nothing when it is there already.
 * Rejects when the chain lacks the deployer, or when the deployment leaves no code.
 */
export const deploy = async (
  payer: Payer,
  initCode: string,
  salt: string,
  /** What is paid for gas; absent: what the node suggests. */
  fees: () => Promise<TransactionRequest> = async () => ({})
): Promise<string> => {
  const signer = await toSigner(payer)
  const provider = signer.provider
  if (provider === null) throw new Error("the paying signer has no provider")
  const address = addressOf(initCode, salt)
  if ((await provider.getCode(address)) !== "0x") return address
  if ((await provider.getCode(deterministicDeployer)) === "0x")
    throw new Error(`this chain has no deterministic deployer at ${deterministicDeployer}`)
  const sent = await signer.sendTransaction({
    ...(await fees()),
    to: deterministicDeployer,
    data: concat([salt, initCode])
  })
  await sent.wait()
  if ((await provider.getCode(address)) === "0x") throw new Error(`nothing was deployed at ${address}`)
  return address
}
