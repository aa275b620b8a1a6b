import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { type JsonRpcProvider, Network } from "ethers"
import * as NoAnswer from "./NoAnswer.js"
import { NodeProvider } from "./NodeProvider.js"

/**
 * An ethers provider for a node, closed with the scope. The network has an invented name: with a public chain's id ethers
 * would query that chain's gas station on the internet.
 */
export const connect = (
  url: string,
  chainId: number,
  pollingInterval = 20
): Effect.Effect<JsonRpcProvider, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new NodeProvider(url, new Network("of the operator", chainId), {
          staticNetwork: true,
          cacheTimeout: -1,
          // Otherwise each call waits 10 ms for others to batch with.
          batchStallTime: 0,
          pollingInterval
        })
    ),
    (provider) => Effect.sync(() => provider.destroy())
  )

const noNode = "--rpc: the server there is not a node of a chain"

/** Reads the chain id of the node at `--rpc`. */
export const chainIdOf = (url: string): Effect.Effect<number, string> =>
  Effect.tryPromise({
    try: async () => {
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}',
        redirect: "error"
      })
      const body: unknown = await answer.json()
      return Predicate.hasProperty(body, "result") ? Number(body.result) : Number.NaN
    },
    catch: (why) => {
      const reason = NoAnswer.reason(why)
      return reason === null ? noNode : `the node does not answer: ${reason}`
    }
  }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.seconds(20),
      orElse: () => Effect.fail("the node does not answer")
    }),
    Effect.filterOrFail(
      (chainId) => Number.isSafeInteger(chainId) && chainId > 0,
      () => noNode
    )
  )
