import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Hex from "../../domain/evm/Hex.js"
import * as Multicall from "../../domain/evm/Multicall.js"
import * as Words from "../../domain/evm/Words.js"
import type { ChainFacts } from "../engine/ChainFacts.js"
import type { BlockTag, Call, CallResult, ChainClient, ChainRpcError } from "../ports/ChainRpc.js"

/** What a call came to, or why the node gave no result of it. */
export type Outcome = Either.Either<CallResult, ChainRpcError>

type Addressed = Call & Multicall.Call

const together = { concurrency: "unbounded" } as const

/** How often reads behind one that may have starved them are tried in one call again, before each is made alone. */
const maxRepeats = 2

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

/** One Multicall3 call and the block it ran in; null when the node does not do it as a whole. */
const aggregate = (chain: ChainClient, calls: ReadonlyArray<Addressed>, at: BlockTag) =>
  Effect.map(
    Effect.catchIf(
      chain.call(
        {
          to: Multicall.address,
          data: Multicall.aggregate([{ to: Multicall.address, data: Multicall.getBlockNumber }, ...calls])
        },
        undefined,
        at
      ),
      ({ reason }) => reason !== "rateLimited",
      () => Effect.succeed(null)
    ),
    (answer) => {
      if (answer === null || !answer.success) return null
      const decoded = Multicall.decode(answer.data, calls.length + 1)
      if (Either.isLeft(decoded)) return null
      const [block, ...results] = decoded.right
      return block?.success === true ? { block: Words.readUint(Words.read(block.data), 0), results } : null
    }
  )

/** Nothing was said: the call may have run out of gas. */
const isSilent = ({ data, success }: CallResult): boolean => !success && data === Hex.empty

/**
 * All in one Multicall3 call. One that takes all the gas it gets leaves a 64th of it to those behind it, so from
 * the first that failed without a word on nothing is believed: the silent ones are made alone, where each has all the
 * gas that the node grants, the others together once more, at the same block.
 */
const aggregated = (
  chain: ChainClient,
  calls: ReadonlyArray<Addressed>,
  at: BlockTag,
  repeats: number
): Effect.Effect<ReadonlyArray<Outcome>, ChainRpcError> =>
  Effect.gen(function* () {
    const answer = yield* aggregate(chain, calls, at)
    if (answer === null) return yield* typeof at === "bigint" ? alone(chain, calls, at) : pinned(chain, calls)
    const { block, results } = answer
    const outcomes: Array<Outcome> = results.map((result) => Either.right(result))
    const first = results.findIndex(isSilent)
    if (first < 0) return outcomes
    const places = calls.map((call, place) => ({
      call,
      place,
      silent: results.slice(place, place + 1).some(isSilent)
    }))
    const silent = places.filter((one) => one.silent)
    const starved = places.filter((one) => one.place > first && !one.silent)
    const callsOf = (ones: typeof places) => ones.map(({ call }) => call)
    const [own, shared] = yield* Effect.all(
      [
        alone(chain, callsOf(silent), block),
        starved.length === 0 || repeats === 0
          ? alone(chain, callsOf(starved), block)
          : aggregated(chain, callsOf(starved), block, repeats - 1)
      ],
      together
    )
    for (const [ones, found] of [
      [silent, own],
      [starved, shared]
    ] as const)
      for (const [index, outcome] of found.entries()) outcomes[ones[index]?.place ?? 0] = outcome
    return outcomes
  })

const addressed = (calls: ReadonlyArray<Call>): ReadonlyArray<Addressed> =>
  calls.flatMap(({ data, from, to }) => (to === undefined || from !== undefined ? [] : [{ to, data }]))

/**
 * What the calls return, all at one block. Those that name no sender go through Multicall3 in one call where the chain
 * has it. Fails when the node answers nothing at all; a call that fails, fails alone.
 */
export const run = (
  chain: ChainClient,
  facts: ChainFacts,
  calls: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<Outcome>, ChainRpcError> =>
  Effect.gen(function* () {
    const anonymous = addressed(calls)
    const outcomes = yield* calls.length < 2
      ? alone(chain, calls, "latest")
      : anonymous.length === calls.length && (yield* facts.code(chain, Multicall.address)) !== null
        ? aggregated(chain, anonymous, "latest", maxRepeats)
        : pinned(chain, calls)
    const failures = outcomes.flatMap((outcome) => (Either.isLeft(outcome) ? [outcome.left] : []))
    const [first] = failures
    return first !== undefined &&
      failures.length === outcomes.length &&
      failures.every(({ reason }) => reason !== "rejected")
      ? yield* Effect.fail(first)
      : outcomes
  })
