import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import { NodeCache } from "./NodeCache.js"

export interface EoaNonces {
  /** At most the nonce at the latest block: mined transactions have used all below it. */
  readonly latest: bigint
  /** The first nonce above all transactions that the node knows, mined or pending. */
  readonly next: bigint
}

/** Most pending transactions that a node's answer may imply. */
export const mostAhead = 1_024n

/** EIP-2681: the highest nonce that a transaction may have. */
const highest = 2n ** 64n - 2n

/** Whether a transaction with the next nonce can be mined; one too far ahead would block its lane forever. */
export const canBe = ({ latest, next }: EoaNonces): boolean => next <= highest && next <= latest + mostAhead

/** Memory limit of the cache, and the size of one entry, bytes. */
const memory = { most: 1_024 * 1_024, entry: 256 }

/** Reads both from the node. `pending`: the pending nonce, if it was just read. */
export const read = (
  chain: ChainClient,
  eoa: Address,
  pending: Effect.Effect<bigint, ChainRpcError> = chain.transactionCount(eoa, "pending")
): Effect.Effect<EoaNonces, ChainRpcError> =>
  Effect.map(
    Effect.all([chain.transactionCount(eoa, "latest"), pending], { concurrency: "unbounded" }),
    ([latest, pending]) => ({ latest, next: BigInts.max(latest, pending) })
  )

/**
 * Reads the nonces of an EOA. The nonce at the latest block only grows, and only bounds the pending one. A cached value
 * holds until the node's pending nonce is below it, as after a reorganisation, or too far above it.
 */
export type ReadNonces = (chain: ChainClient, eoa: Address) => Effect.Effect<EoaNonces, ChainRpcError>

export const make = (): ReadNonces => {
  const seen = new NodeCache<bigint>(memory.most, () => memory.entry)

  const both = (chain: ChainClient, eoa: Address, pending?: Effect.Effect<bigint>) =>
    Effect.tap(read(chain, eoa, pending), ({ latest }) => Effect.sync(() => seen.set(chain, eoa, latest)))

  return (chain, eoa) =>
    Effect.suspend(() => {
      const latest = seen.get(chain, eoa)
      if (latest === undefined) return both(chain, eoa)
      return Effect.flatMap(chain.transactionCount(eoa, "pending"), (pending) =>
        pending < latest || pending > latest + mostAhead
          ? both(chain, eoa, Effect.succeed(pending))
          : Effect.succeed({ latest, next: pending })
      )
    })
}
