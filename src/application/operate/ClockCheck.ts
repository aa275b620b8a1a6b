import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Metrics from "../observe/Metrics.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { ClockConfirmations } from "../ports/clock/ClockConfirmations.js"
import { ClockTrust } from "../ports/clock/ClockTrust.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import * as Wait from "../runtime/Wait.js"

/** A clock that is further than this from a chain's time, or from the time that was confirmed, may be wrong. */
const toleratedMillis = 3_600_000
/** How long a node has to answer, and how soon one that was silent is asked again. */
const patienceMillis = 5_000
const askAgain = "10 seconds"
/** How often an operator's word is looked for. */
const lookInterval = "5 seconds"

/** Their blocks have whatever time whoever runs them wants. */
const developmentChains = new Set([1_337n, 31_337n])

export interface Options {
  readonly profiles: ReadonlyArray<NetworkProfile>
  /** What an operator does who knows that the clock is right. */
  readonly remedy: string
  /** The operator's latest word. */
  readonly confirmation: ClockConfirmations["Service"]["latest"]
}

/** How far the clock is ahead of the chain's latest block, milliseconds; null: the node is away. */
const aheadOf = ({ chainId, rpc }: NetworkProfile) =>
  Effect.gen(function* () {
    if (rpc === null) return null
    const rpcs = yield* ChainRpc
    const chain = yield* rpcs.connect(Redacted.value(rpc), "operator")
    const block = yield* chain.block("latest")
    if (block === null) return null
    return { chainId, millis: (yield* Clock.currentTimeMillis) - block.timestamp * 1_000 }
  }).pipe(
    (asking) => Wait.within(asking, patienceMillis, () => Effect.succeed(null)),
    Effect.catchCause(() => Effect.succeed(null))
  )

interface Heard {
  readonly chainId: bigint
  readonly millis: number
}

/** What the first chains that answer say. */
const hear = (asked: ReadonlyArray<NetworkProfile>): Effect.Effect<ReadonlyArray<Heard>, never, ChainRpc> =>
  Effect.gen(function* () {
    const heard = yield* Effect.forEach(asked, aheadOf, { concurrency: "unbounded" })
    const known = heard.filter((each) => each !== null)
    if (known.length > 0) return known
    yield* (yield* ClockTrust).become("unheard")
    return yield* Effect.delay(hear(asked), askAgain)
  })

const namesOf = (heard: ReadonlyArray<Heard>): string => heard.map(({ chainId }) => chainId).join(", ")

/** Until the operator says that the clock is right, from now on or within the hour before. */
const confirmed = ({ confirmation }: Options, before: bigint) =>
  Effect.gen(function* () {
    const latest = yield* confirmation
    const now = yield* Clock.currentTimeMillis
    return latest !== null && (latest.number > before || Math.abs(now - latest.at) <= toleratedMillis)
  }).pipe(Effect.catch(() => Effect.succeed(false)))

const decide = (options: Options, asked: ReadonlyArray<NetworkProfile>) =>
  Effect.gen(function* () {
    const trust = yield* ClockTrust
    const first = yield* Effect.retry(options.confirmation, Schedule.spaced(lookInterval))
    const isConfirmed = confirmed(options, first?.number ?? 0n)
    const heard = yield* hear(asked)
    const far = heard.filter(({ millis }) => Math.abs(millis) > toleratedMillis)
    if (far.length === 0) return yield* trust.become("trusted")
    const chains = far.map(({ chainId, millis }) => `${chainId}: ${Math.round(millis / 1_000)} s`).join(", ")
    const near = namesOf(heard.filter((each) => !far.includes(each)))
    const told = Effect.annotateLogs({ aheadOfChains: chains, ...(near !== "" && { nearToChains: near }) })
    if (!(yield* isConfirmed)) {
      yield* trust.become("doubted")
      yield* Metric.update(Metrics.clockDoubted, 1)
      yield* Effect.logWarning(
        `the clock is over an hour from the time of a chain's latest block: nothing is deleted for its age and no accepted request expires. Set the clock right and start again; where it is right, since the node is behind or its chain makes no blocks, ${options.remedy}`
      ).pipe(told)
      yield* Effect.repeat(isConfirmed, { schedule: Schedule.spaced(lookInterval), until: (is) => is })
      yield* Metric.update(Metrics.clockDoubted, 0)
    }
    yield* trust.become("trusted")
    yield* told(Effect.logInfo("the operator has confirmed the clock: what is old is deleted and expires"))
  })

/**
 * Holds the clock of this process against the time of its chains, once, beside everything else. A clock that is far ahead would
 * delete what repeats of requests are told by. What has not been asked yet, or is in doubt, is neither deleted nor given up.
 */
export const start = (options: Options): Effect.Effect<void, never, ChainRpc | Scope.Scope> =>
  Effect.gen(function* () {
    const trust = yield* ClockTrust
    yield* Metric.update(Metrics.clockDoubted, 0)
    const asked = options.profiles.filter(
      ({ chainId, rpc }) => rpc !== null && !developmentChains.has(chainId)
    )
    if (asked.length === 0) return yield* trust.become("trusted")
    yield* Effect.forkScoped(decide(options, asked))
  })
