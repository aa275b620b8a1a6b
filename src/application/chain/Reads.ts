import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Multicall from "../../domain/evm/Multicall.js"
import type { BlockTag, Call, CallResult, ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { ChainFacts } from "./ChainFacts.js"

/** What a call came to, or why the node gave no result of it. */
export type Outcome = Either.Either<CallResult, ChainRpcError>

const together = { concurrency: "unbounded" } as const

/** Each in a call of its own, all of them in as few requests as the node takes. */
const alone = (
  chain: ChainClient,
  calls: ReadonlyArray<Call>,
  at: BlockTag
): Effect.Effect<ReadonlyArray<Outcome>> =>
  Effect.forEach(calls, (call) => Effect.either(chain.call(call, undefined, at)), together)

/** Each in a call of its own, all at the block that is the latest now. */
const pinned = (
  chain: ChainClient,
  calls: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<Outcome>, ChainRpcError> =>
  Effect.flatMap(chain.block("latest"), (block) => alone(chain, calls, block?.number ?? "latest"))

/**
 * 900,000 gas that must be left behind all calls. A call that takes all it gets leaves a 64th to those behind it, and
 * contracts that want gas do not always fail: they may say something else.
 */
const tolls = Array.from({ length: 20 }, () => Multicall.toll)

/** All in one Multicall3 call; null when the node does not do it as a whole, or when gas may have been short. */
const aggregated = (
  chain: ChainClient,
  calls: ReadonlyArray<Multicall.Call>
): Effect.Effect<ReadonlyArray<Outcome> | null, ChainRpcError> =>
  chain.call({ to: Multicall.address, data: Multicall.aggregate([...calls, ...tolls]) }).pipe(
    Effect.map(({ data, success }) => {
      const results = success ? Multicall.decode(data, calls.length + tolls.length) : Either.left("reverted")
      return Either.isRight(results) && results.right.slice(calls.length).every(Multicall.isPaid)
        ? results.right.slice(0, calls.length).map((result) => Either.right(result))
        : null
    }),
    Effect.catchIf(
      ({ reason }) => reason !== "rateLimited",
      () => Effect.succeed(null)
    )
  )

/** Those of the calls that can go through Multicall3. */
const anonymous = (calls: ReadonlyArray<Call>): ReadonlyArray<Multicall.Call> =>
  calls.flatMap(({ data, from, to }) => (to === undefined || from !== undefined ? [] : [{ to, data }]))

/**
 * What the calls return, all at one block. When none names its sender they go through Multicall3 in one call, where the
 * chain has it and the gas suffices; else each is a call of its own. Fails when the node answers nothing at all; a call
 * that fails, fails alone.
 */
export const run = (
  chain: ChainClient,
  facts: ChainFacts,
  calls: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<Outcome>, ChainRpcError> =>
  Effect.gen(function* () {
    if (calls.length === 0) return []
    const plain = anonymous(calls)
    const fits =
      calls.length > 1 &&
      plain.length === calls.length &&
      (yield* facts.code(chain, Multicall.address)) !== null
    const outcomes =
      (fits ? yield* aggregated(chain, plain) : null) ??
      (yield* calls.length === 1 ? alone(chain, calls, "latest") : pinned(chain, calls))
    const failures = Arr.getLefts(outcomes)
    const [first] = failures
    return first !== undefined &&
      failures.length === outcomes.length &&
      failures.every(({ reason }) => reason !== "rejected")
      ? yield* Effect.fail(first)
      : outcomes
  })
