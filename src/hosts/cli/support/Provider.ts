import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { JsonRpcProvider, Network } from "ethers"

/**
 * ethers over a node, closed with the scope. The network is named by hand: under the id of a public chain
 * ethers would ask that chain's gas station on the internet.
 */
export const connect = (
  url: string,
  chainId: number,
  pollingInterval = 20
): Effect.Effect<JsonRpcProvider, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new JsonRpcProvider(url, new Network("of the operator", chainId), {
          staticNetwork: true,
          cacheTimeout: -1,
          pollingInterval
        })
    ),
    (provider) => Effect.sync(() => provider.destroy())
  )
