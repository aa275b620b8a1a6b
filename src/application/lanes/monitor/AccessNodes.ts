import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ChainClient, ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { Networks } from "../../ports/Networks.js"

export interface AccessNodes {
  /** The operator's current node for the chain; null: none. A URL stored with a transaction may be outdated. */
  readonly ofOperator: (access: LaneAccess, chainId: bigint) => Effect.Effect<ChainClient | null>
  /** The caller's node; null: none, or no longer allowed. */
  readonly ofCaller: (access: LaneAccess) => Effect.Effect<ChainClient | null>
}

export const make = (rpcs: ChainRpc["Service"], networks: Networks["Service"]): AccessNodes => ({
  ofOperator: ({ accountId, rpc, trust }, chainId) =>
    Effect.gen(function* () {
      const profile = yield* networks.profile(accountId, chainId)
      if (profile === null || profile.rpc === null) return null
      const url = Redacted.value(profile.rpc)
      // The caller named the same node: it is not polled twice.
      if (trust === "caller" && rpc !== null && url === Redacted.value(rpc)) return null
      return yield* Effect.orElseSucceed(rpcs.connect(url, "operator"), () => null)
    }),
  ofCaller: ({ accountId, rpc, trust }) =>
    trust === "operator" || rpc === null
      ? Effect.succeed(null)
      : Effect.orElseSucceed(rpcs.connect(Redacted.value(rpc), { account: accountId }), () => null)
})
