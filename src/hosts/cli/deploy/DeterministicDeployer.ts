import {
  concat,
  getCreate2Address,
  type JsonRpcProvider,
  keccak256,
  type Provider,
  type Signer,
  Transaction,
  type TransactionRequest
} from "ethers"

/** Who pays: a signer with a provider, or the first unlocked account of a development node. */
export type Payer = Signer | JsonRpcProvider

/** What is paid for gas; empty: what the node suggests. */
type Fees = () => Promise<TransactionRequest>

const suggested: Fees = async () => ({})

/**
 * The keyless CREATE2 deployer that stands at this address on nearly every chain, anvil included. Its calldata is
 * salt (32 bytes) ++ creation code with constructor arguments.
 */
export const deterministicDeployer = "0x4e59b44847b379578588920cA78FbF26c0B4956C"

/**
 * Its only transaction: 69 bytes of code that do CREATE2. The signature is made up, so that nobody has the key of the
 * account that it comes from, and the contract has the same address on every chain.
 */
const raw = `0xf8a58085174876e800830186a08080b853604580600e600039806000f350fe7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf31ba0${"22".repeat(32)}a0${"22".repeat(32)}`

const { data, from: sender, gasLimit, gasPrice } = Transaction.from(raw)
const from = sender ?? ""

/** What it leaves on the chain. */
export const runtime = `0x${data.split("f350fe")[1]}`

/** Wei that its account needs: gas limit by gas price, both of which are signed. */
export const cost = gasLimit * (gasPrice ?? 0n)

const refused = (why: unknown): Error => {
  const text = why instanceof Error ? why.message : String(why)
  return new Error(
    /replay|eip-?155|unprotected/i.test(text)
      ? "the node takes no transactions without a chain id (EIP-155), which the deterministic deployer's is: let the node's operator allow it for this one"
      : `the node refuses the transaction of ${from}: ${text.slice(0, 200)}`
  )
}

/** Puts the deployer on a chain that lacks it: gives its account what is missing, and sends its transaction. */
export const bring = async (payer: Signer, provider: Provider, fees: Fees = suggested): Promise<void> => {
  if ((await provider.getCode(deterministicDeployer)) !== "0x") return
  const held = await provider.getBalance(from)
  if (held < cost)
    await (await payer.sendTransaction({ ...(await fees()), to: from, value: cost - held })).wait()
  const sent = await provider.broadcastTransaction(raw).catch((why) => {
    throw refused(why)
  })
  await sent.wait()
}

/** Where `deploy` puts this code. */
export const addressOf = (initCode: string, salt: string): string =>
  getCreate2Address(deterministicDeployer, salt, keccak256(initCode))

/**
 * Puts the code at its deterministic address and returns that address; sends nothing when it is there already.
 * Rejects when the chain lacks the deployer, or when the deployment leaves no code.
 */
export const deploy = async (
  payer: Payer,
  initCode: string,
  salt: string,
  fees: Fees = suggested
): Promise<string> => {
  const signer = "getSigner" in payer ? await payer.getSigner(0) : payer
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
