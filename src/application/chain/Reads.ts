import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Multicall from "../../domain/evm/Multicall.js"
import * as Address from "../../domain/primitives/Address.js"
import type { Hex } from "../../domain/primitives/Hex.js"
import type { BlockTag, Call, CallResult, ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { ChainFacts } from "./ChainFacts.js"

/** The address that a function without parameters returns; null when it returns none. */
export const addressAt = (chain: ChainClient, to: Address.Address, selector: Hex) =>
  Effect.map(chain.call({ to, data: selector }), ({ data, success }) =>
    success && data.length === 66 ? Address.fromWord(data) : null
  )

/** A call's result, or the node's failure to run it. */
export type Outcome = Result.Result<CallResult, ChainRpcError>

const together = { concurrency: "unbounded" } as const

/** Runs each call separately, in as few requests as the node takes. */
const alone = (chain: ChainClient, calls: ReadonlyArray<Call>, at: BlockTag) =>
  Effect.forEach(calls, (call) => Effect.result(chain.call(call, undefined, at)), together)

/** Runs each call separately, all at the current latest block. */
const pin = (chain: ChainClient, calls: ReadonlyArray<Call>) =>
  Effect.flatMap(chain.block("latest"), (block) => alone(chain, calls, block?.number ?? "latest"))

/**
 * Calls that use up 900,000 gas, which must be left after all calls. A call that takes all the gas it gets leaves a
 * 64th to those after it, and contracts that run short do not always fail: they may return something else.
 */
const tolls = Array.from({ length: 20 }, () => Multicall.toll)

/**
 * Runs all in one call of Multicall3's code; null when the node does not run it as a whole, or when gas may have been
 * short. A state override puts the code at the zero address, so targets see the sender of a call without one.
 */
const aggregate = (chain: ChainClient, code: Hex, calls: ReadonlyArray<Multicall.Call>) =>
  chain
    .call(
      { to: Address.zero, data: Multicall.aggregate([...calls, ...tolls]) },
      new Map([[Address.zero, { code }]])
    )
    .pipe(
      Effect.map(({ data, success }) => {
        const results = success
          ? Multicall.decode(data, calls.length + tolls.length)
          : Result.fail("reverted")
        return Result.isSuccess(results) && results.success.slice(calls.length).every(Multicall.isPaid)
          ? results.success.slice(0, calls.length).map((result) => Result.succeed(result))
          : null
      }),
      Effect.catchIf(
        ({ reason }) => reason !== "rateLimited",
        () => Effect.succeed(null)
      )
    )

/** The calls that can go through Multicall3's code: it replaces the zero address, so that cannot be a target. */
const anonymous = (calls: ReadonlyArray<Call>): ReadonlyArray<Multicall.Call> =>
  calls.flatMap(({ data, from, to }) =>
    to === undefined || to === Address.zero || from !== undefined ? [] : [{ to, data }]
  )

/**
 * Returns the calls' results, all at one block; a call without a sender is the zero address's. If no call names its
 * sender, they share one call of Multicall3's code, where the chain has it, the node takes state overrides and the gas
 * suffices. Otherwise each runs separately. Fails only when the node answers no call at all.
 */
export const run = Effect.fnUntraced(function* (
  chain: ChainClient,
  facts: ChainFacts,
  calls: ReadonlyArray<Call>
) {
  if (calls.length === 0) return []
  const plain = anonymous(calls)
  const code =
    calls.length > 1 && plain.length === calls.length ? yield* facts.code(chain, Multicall.address) : null
  const outcomes =
    (code === null ? null : yield* aggregate(chain, code, plain)) ??
    (yield* calls.length === 1 ? alone(chain, calls, "latest") : pin(chain, calls))
  const failures = Arr.getFailures(outcomes)
  const [first] = failures
  return first !== undefined &&
    failures.length === outcomes.length &&
    failures.every(({ reason }) => reason !== "rejected")
    ? yield* Effect.fail(first)
    : outcomes
})
