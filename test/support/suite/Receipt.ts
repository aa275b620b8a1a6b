import type { Provider, TransactionReceipt } from "ethers"

const everyMillis = 20
const attempts = 1_000

/**
 * The receipt of a transaction, which must succeed, on an automining chain. `wait()` of ethers misses a transaction
 * mined between its first query and its first known block: no further block may ever come.
 */
export const mined = async (sent: {
  readonly hash: string
  readonly provider: Provider
}): Promise<TransactionReceipt> => {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const receipt = await sent.provider.getTransactionReceipt(sent.hash)
    if (receipt?.status === 1) return receipt
    if (receipt !== null) throw new Error(`transaction ${sent.hash} reverted`)
    await new Promise((resolve) => setTimeout(resolve, everyMillis))
  }
  throw new Error(`transaction ${sent.hash} was not mined`)
}
