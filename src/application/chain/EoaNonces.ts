import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import { NodeCache } from "./NodeCache.js"

/** The nonces of an EOA as its node tells them. */
export interface EoaNonces {
  /** At most the nonce at the latest block: mined transactions have used all below it. */
  readonly latest: bigint
  /** The one after those that the node knows of, mined or waiting. */
  readonly next: bigint
}

/** A node that tells of more transactions than that on their way is not believed. */
export const mostAhead = 1_024n

/** EIP-2681: the highest nonce that a transaction may have. */
const highest = 2n ** 64n - 2n

/** Whether a transaction under the next nonce can be mined. One that is too far ahead would keep its lane waiting for ever. */
export const canBe = ({ latest, next }: EoaNonces): boolean => next <= highest && next <= latest + mostAhead

/** Bytes of all that is remembered, and of one number with its key. */
const memory = { most: 1_024 * 1_024, entry: 256 }

/**
 * Reads the nonces of an EOA. The one at the latest block only grows and only says whether the pending one can be: what a
 * node has said of it is good until its pending nonce is below that, as after a reorg, or too far above.
 */
export type ReadNonces = (chain: ChainClient, eoa: Address) => Effect.Effect<EoaNonces, ChainRpcError>

export const make = (): ReadNonces => {
  const seen = new NodeCache<bigint>(memory.most, () => memory.entry)

  const both = (chain: ChainClient, eoa: Address, pending?: bigint) =>
    Effect.map(
      Effect.all(
        [
          chain.transactionCount(eoa, "latest"),
          pending === undefined ? chain.transactionCount(eoa, "pending") : Effect.succeed(pending)
        ],
        { concurrency: "unbounded" }
      ),
      ([latest, told]): EoaNonces => {
        seen.set(chain, eoa, latest)
        return { latest, next: BigInts.max(latest, told) }
      }
    )

  return (chain, eoa) =>
    Effect.suspend(() => {
      const latest = seen.get(chain, eoa)
      if (latest === undefined) return both(chain, eoa)
      return Effect.flatMap(chain.transactionCount(eoa, "pending"), (pending) =>
        pending < latest || pending > latest + mostAhead
          ? both(chain, eoa, pending)
          : Effect.succeed({ latest, next: pending })
      )
    })
}
