import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as ChainRpc from "../node/ChainRpc.js"
import * as Batches from "../transport/Batches.js"
import * as Egress from "../transport/Egress.js"
import * as Http from "../transport/Http.js"

export type Options = Pick<ChainRpc.Options, "http" | "retry" | "onExchange">

/** Such a service has more to do than a node for a call. */
const patience = { firstByteMillis: 15_000 }

/** Why a URL has no client. */
export interface Refusal {
  readonly reason: "invalidUrl" | "forbidden"
  readonly origin: ""
  readonly message: string
}

/**
 * Clients of JSON-RPC services that are no nodes, whose URLs the operator names: one for each URL, made without any
 * traffic. They need not understand batches, so each call goes alone.
 */
export const make = Effect.fnUntraced(function* <C, E>(
  options: Options,
  clientOf: (origin: string, batches: Batches.Batches) => C,
  refused: (refusal: Refusal) => E
): Effect.fn.Return<{ readonly connect: (url: string) => Effect.Effect<C, E> }, never, Scope.Scope> {
  const { defaults } = ChainRpc
  const retry = { ...defaults.retry, ...options.retry }
  const onExchange = options.onExchange ?? (() => undefined)
  const http = yield* Http.make(defaults.egress, { ...defaults.http, ...patience, ...options.http })
  const background = yield* FiberSet.makeRuntime()
  const limits = { ...defaults.batches, batchCalls: 1 }
  const clients = new Map<string, C>()
  return {
    connect: (url) =>
      Result.match(Egress.target(url, "operator", defaults.egress), {
        onFailure: (reason) =>
          Effect.fail(refused({ reason, origin: "", message: "expected an http or https URL" })),
        onSuccess: (target) =>
          Effect.sync(() => {
            const client =
              clients.get(target.href) ??
              clientOf(target.origin, Batches.make({ background, http, limits, onExchange, retry, target }))
            clients.set(target.href, client)
            return client
          })
      })
  }
})
