import { getCreateAddress, type Provider, type Signer, Transaction, type TransactionRequest } from "ethers"

/**
 * A contract of which nobody has the key: its only transaction was signed with a made-up signature, so the account
 * that it comes from can do nothing else, and the contract has the same address on every chain.
 */
export interface Keyless {
  readonly raw: string
  readonly from: string
  readonly address: string
  /** Wei that its account needs: gas limit by gas price, both of which are signed. */
  readonly cost: bigint
}

export const fromRaw = (raw: string): Keyless => {
  const { from, gasLimit, gasPrice, nonce } = Transaction.from(raw)
  if (from === null || gasPrice === null) throw new Error("not a signed transaction with a gas price")
  return { raw, from, address: getCreateAddress({ from, nonce }), cost: gasLimit * gasPrice }
}

/** The deterministic deployer's, at 0x4e59b44847b379578588920cA78FbF26c0B4956C: 69 bytes of code that do CREATE2. */
export const deterministicDeployer: Keyless = fromRaw(
  `0xf8a58085174876e800830186a08080b853604580600e600039806000f350fe7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf31ba0${"22".repeat(32)}a0${"22".repeat(32)}`
)

const refused = (why: unknown, { from }: Keyless): Error => {
  const text = why instanceof Error ? why.message : String(why)
  return new Error(
    /replay|eip-?155|unprotected/i.test(text)
      ? "the node takes no transactions without a chain id (EIP-155), which the deterministic deployer's is: let the node's operator allow it for this one"
      : `the node refuses the transaction of ${from}: ${text.slice(0, 200)}`
  )
}

/** Gives its account what is missing, and sends its transaction. Sends nothing when the code is there. */
export const deploy = async (
  payer: Signer,
  provider: Provider,
  keyless: Keyless,
  fees: () => Promise<TransactionRequest>
): Promise<void> => {
  if ((await provider.getCode(keyless.address)) !== "0x") return
  const held = await provider.getBalance(keyless.from)
  if (held < keyless.cost)
    await (
      await payer.sendTransaction({ ...(await fees()), to: keyless.from, value: keyless.cost - held })
    ).wait()
  const sent = await provider.broadcastTransaction(keyless.raw).catch((why) => {
    throw refused(why, keyless)
  })
  await sent.wait()
}
