import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Multicall from "../../domain/evm/Multicall.js"
import * as Address from "../../domain/primitives/Address.js"
import type { Hex } from "../../domain/primitives/Hex.js"
import type { BlockTag, Call, CallResult, ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { ChainFacts } from "./ChainFacts.js"

/** What a call came to, or why the node gave no result of it. */
export type Outcome = Result.Result<CallResult, ChainRpcError>

const together = { concurrency: "unbounded" } as const

/** Each in a call of its own, all of them in as few requests as the node takes. */
const alone = (chain: ChainClient, calls: ReadonlyArray<Call>, at: BlockTag) =>
  Effect.forEach(calls, (call) => Effect.result(chain.call(call, undefined, at)), together)

/** Each in a call of its own, all at the block that is the latest now. */
const pinned = (chain: ChainClient, calls: ReadonlyArray<Call>) =>
  Effect.flatMap(chain.block("latest"), (block) => alone(chain, calls, block?.number ?? "latest"))

/**
 * 900,000 gas that must be left behind all calls. A call that takes all it gets leaves a 64th to those behind it, and
 * contracts that want gas do not always fail: they may say something else.
 */
const tolls = Array.from({ length: 20 }, () => Multicall.toll)

/**
 * All in one call of Multicall3's code; null when the node does not do it as a whole, or when gas may have been short.
 * The code runs at the zero address, by a state override: whom they call sees the sender that a call without one has.
 */
const aggregated = (chain: ChainClient, code: Hex, calls: ReadonlyArray<Multicall.Call>) =>
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

/** Those of the calls that can go through Multicall3's code: what stands at the zero address is out of their reach. */
const anonymous = (calls: ReadonlyArray<Call>): ReadonlyArray<Multicall.Call> =>
  calls.flatMap(({ data, from, to }) =>
    to === undefined || to === Address.zero || from !== undefined ? [] : [{ to, data }]
  )

/**
 * What the calls return, all at one block; one without a sender is the zero address's. When none names its sender they
 * go through Multicall3's code in one call, where the chain has it, the node takes state overrides, and the gas
 * suffices; else each is a call of its own. Fails when the node answers nothing at all; a call that fails, fails alone.
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
    (code === null ? null : yield* aggregated(chain, code, plain)) ??
    (yield* calls.length === 1 ? alone(chain, calls, "latest") : pinned(chain, calls))
  const failures = Arr.getFailures(outcomes)
  const [first] = failures
  return first !== undefined &&
    failures.length === outcomes.length &&
    failures.every(({ reason }) => reason !== "rejected")
    ? yield* Effect.fail(first)
    : outcomes
})
