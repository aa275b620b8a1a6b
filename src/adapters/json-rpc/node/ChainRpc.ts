import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import {
  type ChainClient,
  ChainRpc,
  ChainRpcError,
  type NamedBy
} from "../../../application/ports/chain/ChainRpc.js"
import { Lru } from "../../../domain/primitives/Lru.js"
import * as Batches from "../transport/Batches.js"
import * as Egress from "../transport/Egress.js"
import * as Http from "../transport/Http.js"
import type * as Retry from "../transport/Retry.js"
import * as Client from "./Client.js"

export type { Exchange } from "../transport/Batches.js"

/** Limits of calls to nodes. */
export interface Options {
  readonly egress?: Partial<Egress.Rules>
  readonly http?: Partial<Http.Limits>
  readonly batches?: Partial<Batches.Limits>
  readonly retry?: Partial<Retry.Retry>
  /** Nodes kept; the least recently used is evicted first. */
  readonly clients?: number
  /** Called before each HTTP round trip. */
  readonly onExchange?: (exchange: Batches.Exchange) => void
}

/** Limits that a service has unless it sets others. */
export const defaults = {
  egress: { allowLoopback: false, allow: [], accounts: new Map(), resolve: Egress.resolve },
  http: {
    connectMillis: 5_000,
    firstByteMillis: 5_000,
    totalMillis: 15_000,
    responseBytes: 16 * 1_024 * 1_024,
    // A value of a receipt or log takes about 40 bytes.
    responseValues: 524_288,
    callerResponseBytes: 8 * 1_024 * 1_024,
    callerResponseValues: 98_304,
    connectionsPerHost: 16,
    accounts: 1_024
  },
  // 256 hashes of a request and the latest block. Anvil, among others, refuses bodies above 2 MiB.
  batches: { batchCalls: 257, batchBytes: 1_024 * 1_024 },
  retry: {
    baseMillis: 50,
    maxMillis: 1_000,
    withinMillis: 20_000,
    rateLimited: 30,
    unreachable: 2,
    behind: 8
  },
  clients: 1_024
} satisfies Options

/** Scheme and host of a refused URL, for its error; empty when it has no origin. */
const originOf = (url: string): string => {
  const origin = URL.canParse(url) ? new URL(url).origin : "null"
  return origin === "null" ? "" : origin
}

const refusals = {
  invalidUrl: "expected an http or https URL without user information",
  forbidden: "the address is not allowed"
}

/** Nodes over JSON-RPC. It batches calls, and refuses addresses that callers must not reach. */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<ChainRpc["Service"], never, Scope.Scope> {
  const rules = { ...defaults.egress, ...options.egress }
  const limits = { ...defaults.batches, ...options.batches }
  const retry = { ...defaults.retry, ...options.retry }
  const capacity = options.clients ?? defaults.clients
  const onExchange = options.onExchange ?? (() => undefined)
  const http = yield* Http.make(rules, { ...defaults.http, ...options.http })
  const background = yield* FiberSet.makeRuntime()
  const clients = new Lru<string, ChainClient>(capacity)

  const clientOf = (target: Egress.Target): ChainClient => {
    const key = JSON.stringify([target.trust, target.scope, target.href])
    const client =
      clients.get(key) ??
      Client.make(target.origin, Batches.make({ background, http, limits, onExchange, retry, target }))
    clients.set(key, client)
    return client
  }

  const targetOf = (url: string, by: NamedBy) =>
    by === "operator" ? Egress.target(url, by, rules) : Egress.target(url, "caller", rules, by.account)

  return {
    connect: (url, by) =>
      Result.match(targetOf(url, by), {
        onFailure: (reason) => {
          const origin = originOf(url)
          return new ChainRpcError({ reason, origin, message: refusals[reason] })
        },
        onSuccess: (target) => Effect.sync(() => clientOf(target))
      })
  }
})

/** `make` as the port `ChainRpc`. */
export const layer = (options: Options = {}): Layer.Layer<ChainRpc> => Layer.effect(ChainRpc, make(options))
