import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import * as ChainRpc from "../node/ChainRpc.js"
import * as Background from "../transport/Background.js"
import * as Batches from "../transport/Batches.js"
import * as Egress from "../transport/Egress.js"
import * as Http from "../transport/Http.js"

export type Options = Pick<ChainRpc.Options, "http" | "retry" | "onExchange">

/**
 * Clients of JSON-RPC services that are no nodes, whose URLs the operator names: one for each URL, made without any
 * traffic. `Left`: the URL is none. They need not understand batches, so each call goes alone.
 */
export const make = <C>(
  options: Options,
  patience: Partial<Http.Limits>,
  clientOf: (origin: string, batches: Batches.Batches) => C
): Effect.Effect<(url: string) => Either.Either<C, "invalidUrl" | "forbidden">, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { defaults } = ChainRpc
    const retry = { ...defaults.retry, ...options.retry }
    const onExchange = options.onExchange ?? (() => undefined)
    const http = yield* Http.make(defaults.egress, { ...defaults.http, ...patience, ...options.http })
    const background = yield* Background.make
    const limits = { ...defaults.batches, batchCalls: 1 }
    const clients = new Map<string, C>()
    return (url) =>
      Either.map(Egress.target(url, "operator", defaults.egress), (target) => {
        const client =
          clients.get(target.href) ??
          clientOf(target.origin, Batches.make({ background, http, limits, onExchange, retry, target }))
        clients.set(target.href, client)
        return client
      })
  })
