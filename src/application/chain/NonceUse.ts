import * as Effect from "effect/Effect"
import type { ChainClient, ChainRpcError, KnownTransaction } from "../ports/chain/ChainRpc.js"
import type { Lane } from "../ports/journal/Transactions.js"

/**
 * The mined transaction that used a nonce of an EOA: positive proof, where the absence of a receipt would only be a
 * hint (nodes behind a balancer lag behind each other). Null while the chain's latest state has not used it. Needs the
 * account's nonce at past blocks: a node that no longer has them fails.
 */
export const find = (
  chain: ChainClient,
  { signer }: Lane,
  nonce: bigint
): Effect.Effect<KnownTransaction | null, ChainRpcError> =>
  Effect.gen(function* () {
    const head = yield* chain.block("latest")
    if (head === null) return null
    const usedAt = (block: bigint) =>
      Effect.map(chain.transactionCount(signer, block), (count) => count > nonce)
    if (!(yield* usedAt(head.number))) return null
    // Between a block before which it was not used and one in which it is, halved until they touch.
    let used = head.number
    let unused = -1n
    for (let back = 1n; used > 0n; back *= 4n) {
      const block = head.number > back ? head.number - back : 0n
      if (!(yield* usedAt(block))) {
        unused = block
        break
      }
      used = block
    }
    while (used - unused > 1n) {
      const middle = (used + unused) / 2n
      if (yield* usedAt(middle)) used = middle
      else unused = middle
    }
    const transactions = (yield* chain.transactionsIn(used)) ?? []
    return transactions.find((each) => each.from === signer && each.nonce === nonce) ?? null
  })
