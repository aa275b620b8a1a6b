import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Metrics from "../observe/Metrics.js"
import { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { ClockConfirmations } from "../ports/clock/ClockConfirmations.js"
import * as ClockTrust from "../ports/clock/ClockTrust.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import * as Wait from "../runtime/Wait.js"

/** Time limit of a node's answer, and the delay before a silent node is queried again. */
const patienceMillis = 5_000
const askAgain = "10 seconds"
/** Poll interval for the operator's confirmation, and for a clock that was set. */
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

const measure = (
  asked: ReadonlyArray<NetworkProfile>
): Effect.Effect<ReadonlyArray<Difference>, never, ChainRpc> =>
  Effect.map(Effect.forEach(asked, aheadOf, { concurrency: "unbounded" }), (answers) =>
    answers.filter((each) => each !== null)
  )

const isFar = ({ millis }: Difference): boolean => Math.abs(millis) > ClockTrust.toleratedMillis

/** The first chains that answer. */
const firstMeasured = (asked: ReadonlyArray<NetworkProfile>): ReturnType<typeof measure> =>
  Effect.gen(function* () {
    const differences = yield* measure(asked)
    if (differences.length > 0) return differences
    yield* (yield* ClockTrust.ClockTrust).become("unanswered")
    return yield* Effect.delay(firstMeasured(asked), askAgain)
  })

/** Whether the operator has confirmed the clock since this call, or within the hour. */
const confirming = ({ confirmation }: Options) =>
  Effect.map(Effect.retry(confirmation, Schedule.spaced(pollInterval)), (first) =>
    Effect.gen(function* () {
      const latest = yield* confirmation
      const now = yield* Clock.currentTimeMillis
      return (
        latest !== null &&
        (latest.number > (first?.number ?? 0n) || Math.abs(now - latest.at) <= ClockTrust.toleratedMillis)
      )
    }).pipe(Effect.orElseSucceed(() => false))
  )

/** Trusts the clock when the operator confirms it, or when all of `far` and all other chains that answer are near. */
const regain = (
  asked: ReadonlyArray<NetworkProfile>,
  isConfirmed: Effect.Effect<boolean>,
  far: ReadonlyArray<Difference>
) =>
  Effect.gen(function* () {
    const { become } = yield* ClockTrust.ClockTrust
    yield* become("doubted")
    yield* Metric.update(Metrics.clockDoubted, 1)
    const isNear = Effect.map(
      measure(asked),
      (differences) =>
        differences.length > 0 &&
        !differences.some(isFar) &&
        far.every(({ chainId }) => differences.some((each) => each.chainId === chainId))
    )
    const until = { until: (is: boolean) => is }
    yield* Effect.raceFirst(
      Effect.repeat(isConfirmed, { schedule: Schedule.spaced(pollInterval), ...until }),
      Effect.repeat(isNear, { schedule: Schedule.spaced(askAgain), ...until })
    )
    yield* Metric.update(Metrics.clockDoubted, 0)
    yield* become("trusted")
    yield* Effect.logInfo("clock near the chains' time, or confirmed; deletion and expiry resume")
  })

const first = (options: Options, asked: ReadonlyArray<NetworkProfile>) =>
  Effect.gen(function* () {
    const isConfirmed = yield* confirming(options)
    const differences = yield* firstMeasured(asked)
    const far = differences.filter(isFar)
    if (far.length === 0 || (yield* isConfirmed))
      return yield* (yield* ClockTrust.ClockTrust).become("trusted")
    const near = differences.filter((each) => !far.includes(each)).map(({ chainId }) => chainId)
    yield* Effect.annotateLogs(
      Effect.logWarning(`clock over an hour from a chain's; nothing expires; set it, or ${options.remedy}`),
      {
        aheadOfChains: far
          .map(({ chainId, millis }) => `${chainId}: ${Math.round(millis / 1_000)} s`)
          .join(", "),
        ...(near.length > 0 && { nearToChains: near.join(", ") })
      }
    )
    yield* regain(asked, isConfirmed, far)
  })

/** Doubts a clock that was set while the process runs, for example by a wrong time server. */
const watch = (options: Options, asked: ReadonlyArray<NetworkProfile>) =>
  Effect.gen(function* () {
    const { wasSet } = yield* ClockTrust.ClockTrust
    yield* Effect.repeat(wasSet, { schedule: Schedule.spaced(pollInterval), until: (is) => is })
    yield* Effect.logWarning(`clock set by over an hour; nothing expires; set it right, or ${options.remedy}`)
    yield* regain(asked, yield* confirming(options), [])
  })

/**
 * Compares this process's clock with its chains' time at the start, and whenever it was set, in the background. A clock
 * far ahead would delete the records that answer repeated requests. Until chains have answered, or while the clock is
 * doubted, no record is deleted and no work expires.
 */
export const start = (options: Options): Effect.Effect<void, never, ChainRpc | Scope.Scope> =>
  Effect.gen(function* () {
    const trust = yield* ClockTrust.ClockTrust
    yield* Metric.update(Metrics.clockDoubted, 0)
    const asked = options.profiles.filter(
      ({ chainId, rpc }) => rpc !== null && !developmentChains.has(chainId)
    )
    if (asked.length === 0) return yield* trust.become("exempt")
    yield* Effect.forkScoped(Effect.andThen(first(options, asked), Effect.forever(watch(options, asked))))
  })
