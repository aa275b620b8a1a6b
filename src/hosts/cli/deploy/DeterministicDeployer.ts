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

/** The payer: a signer with a provider, or the first unlocked account of a development node. */
export type Payer = Signer | JsonRpcProvider

/** Gas prices of a transaction; empty: the node's suggestion. */
type Fees = () => Promise<TransactionRequest>

const suggested: Fees = async () => ({})

/**
 * The keyless CREATE2 deployer, at this address on nearly every chain, including anvil. Its calldata is salt (32 bytes) ++
 * creation code with constructor arguments.
 */
export const deterministicDeployer = "0x4e59b44847b379578588920cA78FbF26c0B4956C"

/**
 * Its only transaction: 69 bytes of code for CREATE2. The signature is invented, so the sending account has no known key,
 * and the contract has the same address on every chain.
 */
const raw = `0xf8a58085174876e800830186a08080b853604580600e600039806000f350fe7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf31ba0${"22".repeat(32)}a0${"22".repeat(32)}`

const { data, from: sender, gasLimit, gasPrice } = Transaction.from(raw)
const from = sender ?? ""

export const runtime = `0x${data.split("f350fe")[1]}`

/** Wei that the keyless account needs: gas limit times gas price, both signed. */
export const cost = gasLimit * (gasPrice ?? 0n)

const refusal = (why: unknown): Error => {
  const text = why instanceof Error ? why.message : String(why)
  return new Error(
    /replay|eip-?155|unprotected/i.test(text)
      ? "the node takes no transactions without a chain id (EIP-155), which the deterministic deployer's is: let the node's operator allow it for this one"
      : `the node refuses the transaction of ${from}: ${text.slice(0, 200)}`
  )
}

/** Deploys the deployer on a chain that lacks it: funds its account and sends its transaction. */
export const bring = async (payer: Signer, provider: Provider, fees: Fees = suggested): Promise<void> => {
  if ((await provider.getCode(deterministicDeployer)) !== "0x") return
  const held = await provider.getBalance(from)
  if (held < cost)
    await (await payer.sendTransaction({ ...(await fees()), to: from, value: cost - held })).wait()
  const sent = await provider.broadcastTransaction(raw).catch((why) => {
    throw refusal(why)
  })
  await sent.wait()
}

/** The address at which `deploy` puts this code. */
export const addressOf = (initCode: string, salt: string): string =>
  getCreate2Address(deterministicDeployer, salt, keccak256(initCode))

/**
 * Deploys the code at its deterministic address and returns the address; sends nothing when the code exists. Rejects when
 * the chain lacks the deployer, or when the deployment leaves no code.
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
