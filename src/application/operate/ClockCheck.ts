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

/** A larger distance from a chain's time, or from the confirmed time, makes the clock doubtful. */
const toleratedMillis = 3_600_000
/** Time limit of a node's answer, and the delay before a silent node is queried again. */
const patienceMillis = 5_000
const askAgain = "10 seconds"
/** Poll interval for the operator's confirmation. */
const pollInterval = "5 seconds"

/** Developers set these chains' block times at will. */
const developmentChains = new Set([1_337n, 31_337n])

export interface Options {
  readonly profiles: ReadonlyArray<NetworkProfile>
  /** Advice for an operator who knows that the clock is right. */
  readonly remedy: string
  /** The operator's latest confirmation. */
  readonly confirmation: ClockConfirmations["Service"]["latest"]
}

/** Time that the clock is ahead of the chain's latest block, milliseconds; null: the node is away. */
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

interface Difference {
  readonly chainId: bigint
  readonly millis: number
}

/** Waits for the first chains that answer. */
const measure = (
  asked: ReadonlyArray<NetworkProfile>
): Effect.Effect<ReadonlyArray<Difference>, never, ChainRpc> =>
  Effect.gen(function* () {
    const differences = yield* Effect.forEach(asked, aheadOf, { concurrency: "unbounded" })
    const known = differences.filter((each) => each !== null)
    if (known.length > 0) return known
    yield* (yield* ClockTrust).become("unheard")
    return yield* Effect.delay(measure(asked), askAgain)
  })

const namesOf = (differences: ReadonlyArray<Difference>): string =>
  differences.map(({ chainId }) => chainId).join(", ")

/** Whether the operator has confirmed the clock, after `before` or within the hour. */
const confirmed = ({ confirmation }: Options, before: bigint) =>
  Effect.gen(function* () {
    const latest = yield* confirmation
    const now = yield* Clock.currentTimeMillis
    return latest !== null && (latest.number > before || Math.abs(now - latest.at) <= toleratedMillis)
  }).pipe(Effect.catch(() => Effect.succeed(false)))

const decide = (options: Options, asked: ReadonlyArray<NetworkProfile>) =>
  Effect.gen(function* () {
    const trust = yield* ClockTrust
    const first = yield* Effect.retry(options.confirmation, Schedule.spaced(pollInterval))
    const isConfirmed = confirmed(options, first?.number ?? 0n)
    const differences = yield* measure(asked)
    const far = differences.filter(({ millis }) => Math.abs(millis) > toleratedMillis)
    if (far.length === 0) return yield* trust.become("trusted")
    const chains = far.map(({ chainId, millis }) => `${chainId}: ${Math.round(millis / 1_000)} s`).join(", ")
    const near = namesOf(differences.filter((each) => !far.includes(each)))
    const annotated = Effect.annotateLogs({
      aheadOfChains: chains,
      ...(near !== "" && { nearToChains: near })
    })
    if (!(yield* isConfirmed)) {
      yield* trust.become("doubted")
      yield* Metric.update(Metrics.clockDoubted, 1)
      yield* Effect.logWarning(
        `clock over an hour from a chain's; nothing expires; set it, or ${options.remedy}`
      ).pipe(annotated)
      yield* Effect.repeat(isConfirmed, { schedule: Schedule.spaced(pollInterval), until: (is) => is })
      yield* Metric.update(Metrics.clockDoubted, 0)
    }
    yield* trust.become("trusted")
    yield* annotated(Effect.logInfo("clock confirmed by the operator; deletion and expiry resume"))
  })

/**
 * Compares this process's clock with its chains' time once, in the background. A clock far ahead would delete the
 * records that answer repeated requests. Until chains have answered, or while the clock is doubted, no record is
 * deleted and no work expires.
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
