import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ChainRpcError, NetworkFees } from "../../../application/ports/chain/ChainRpc.js"
import * as Fees from "../../../domain/erc4337/gas/Fees.js"
import { type FeeHistory, quantityOrNull } from "./RpcSchemas.js"

/** Blocks whose tips count: more than a burst of empty or odd blocks, at most a minute on most chains. */
export const pastBlocks = 10

/** Half of a block's gas paid at most this tip. */
export const rewardPercentile = 50

export interface Questions {
  /** `eth_feeHistory` of `pastBlocks` with the `rewardPercentile`. */
  readonly history: Effect.Effect<typeof FeeHistory.Type, ChainRpcError>
  readonly suggestedTip: Effect.Effect<bigint, ChainRpcError>
  readonly gasPrice: Effect.Effect<bigint, ChainRpcError>
  /** Base fee of the latest block: null without EIP-1559, undefined when the node returns no block. */
  readonly baseFee: Effect.Effect<bigint | null | undefined, ChainRpcError>
}

/** Lifetime of a cached tip, in ms. It covers many blocks and changes little between two. */
export const tipMillis = 2_000

type Reason = ChainRpcError["reason"]

const refusals: ReadonlySet<Reason> = new Set<Reason>(["rejected", "unsupported"])
const noAnswers: ReadonlySet<Reason> = new Set<Reason>(["rejected", "unsupported", "notAnRpc"])

/**
 * Null when the node does not answer this call. An unreachable node fails; a node with an internal error for this call may
 * answer the next one.
 */
const orNull = <A>(ask: Effect.Effect<A, ChainRpcError>, reasons: ReadonlySet<Reason>) =>
  Effect.catchIf(
    ask,
    ({ reason, rpcCode }) => reasons.has(reason) || (reason === "unavailable" && rpcCode !== undefined),
    () => Effect.succeed(null)
  )

const pastOf = ({ gasUsedRatio, reward }: typeof FeeHistory.Type): ReadonlyArray<Fees.PastBlock> =>
  (reward ?? []).flatMap((row, place) => {
    const paid = Array.isArray(row) ? quantityOrNull(row[0]) : null
    return paid === null ? [] : [{ reward: paid, empty: gasUsedRatio?.[place] === 0 }]
  })

/** Combines a history and a suggestion; null when they do not suffice. */
const marketOf = (history: typeof FeeHistory.Type | null, suggested: bigint | null): NetworkFees | null => {
  const nextBaseFee = quantityOrNull(history?.baseFeePerGas.at(-1))
  if (history === null || nextBaseFee === null) return null
  const tip = Fees.tipOf(pastOf(history), suggested)
  return tip === null ? null : { nextBaseFee, tip }
}

/**
 * Fees of a node. Without EIP-1559, nodes answer `eth_feeHistory` with base fees of 0, so only a block shows whether the
 * chain has a base fee; it is read until it does. Without EIP-1559, or with an unusable history, the fee is the gas price.
 */
export const make = ({ baseFee, gasPrice, history, suggestedTip }: Questions) => {
  let market: boolean | undefined
  let suggestion: { readonly tip: bigint; readonly at: number } | undefined
  const past = orNull(history, noAnswers)
  const ofMarket = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    // A clock that was set back must not prolong the cache.
    const isFresh = suggestion !== undefined && now >= suggestion.at && now < suggestion.at + tipMillis
    const asked = Effect.tap(suggestedTip, (tip) =>
      Effect.sync(() => {
        suggestion = { tip, at: now }
      })
    )
    const suggested =
      suggestion !== undefined && isFresh ? Effect.succeed(suggestion.tip) : orNull(asked, refusals)
    const [known, tip] = yield* Effect.all([past, suggested], { concurrency: "unbounded" })
    return marketOf(known, tip)
  })
  const ofGasPrice = Effect.map(gasPrice, (price): NetworkFees => ({ nextBaseFee: null, tip: price }))
  const first = Effect.all([ofMarket, orNull(gasPrice, noAnswers), Effect.result(baseFee)], {
    concurrency: "unbounded"
  }).pipe(
    Effect.flatMap(([fees, price, latest]) => {
      if (latest._tag === "Success" && latest.success !== undefined) market = latest.success !== null
      if (fees !== null && market !== false) return Effect.succeed(fees)
      return price === null ? ofGasPrice : Effect.succeed<NetworkFees>({ nextBaseFee: null, tip: price })
    })
  )
  return Effect.suspend((): Effect.Effect<NetworkFees, ChainRpcError> => {
    if (market === undefined) return first
    if (!market) return ofGasPrice
    return Effect.flatMap(ofMarket, (fees) => (fees === null ? ofGasPrice : Effect.succeed(fees)))
  })
}
