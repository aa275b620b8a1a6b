import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ChainClient, ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { Networks } from "../../ports/Networks.js"

/** The nodes that a transaction's access names. */
export interface AccessNodes {
  /**
   * The node that the operator has for the chain at present; null: none. A URL that was stored with a transaction is of
   * the past.
   */
  readonly ofOperator: (access: LaneAccess, chainId: bigint) => Effect.Effect<ChainClient | null>
  /** The node that the caller named; null: none, or one that is not allowed any more. */
  readonly ofCaller: (access: LaneAccess) => Effect.Effect<ChainClient | null>
}

export const make = (rpcs: ChainRpc["Service"], networks: Networks["Service"]): AccessNodes => ({
  ofOperator: ({ accountId, rpc, trust }, chainId) =>
    Effect.gen(function* () {
      const profile = yield* networks.profile(accountId, chainId)
      if (profile === null || profile.rpc === null) return null
      const url = Redacted.value(profile.rpc)
      // One node is not asked twice.
      if (trust === "caller" && rpc !== null && url === Redacted.value(rpc)) return null
      return yield* Effect.orElseSucceed(rpcs.connect(url, "operator"), () => null)
    }),
  ofCaller: ({ accountId, rpc, trust }) =>
    trust === "operator" || rpc === null
      ? Effect.succeed(null)
      : Effect.orElseSucceed(rpcs.connect(Redacted.value(rpc), { account: accountId }), () => null)
})
