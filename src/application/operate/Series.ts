import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/**
 * The last hour in minutes and the last day in hours, sampled from this process's own metrics. A restart clears them;
 * each replica of a service has separate ones.
 */

/** Totals since the start of the process, at one time. */
export interface Sample {
  /** Unix milliseconds. */
  readonly at: number
  readonly succeeded: number
  readonly failed: number
  /** Ops by the upper bound of their seconds from acceptance to inclusion, cumulative. */
  readonly inclusion: ReadonlyArray<readonly [bound: number, count: number]>
  /** Wei that EOAs have paid for gas, by `chain signer`. */
  readonly gas: ReadonlyMap<string, number>
}

export interface Series {
  /** Call it every minute. */
  readonly sample: Effect.Effect<void>
  /** At most 61 samples a minute each, and 25 an hour each; oldest first, the last one is current. */
  readonly hour: Effect.Effect<ReadonlyArray<Sample>>
  readonly day: Effect.Effect<ReadonlyArray<Sample>>
}

const read: Effect.Effect<Sample> = Effect.gen(function* () {
  const outcomes = { success: 0, failed: 0 }
  const gas = new Map<string, number>()
  let inclusion: Sample["inclusion"] = []
  for (const { attributes = {}, id, ...metric } of yield* Metric.snapshot) {
    if (metric.type === "Counter" && id === "castellan_ops_settled_total")
      outcomes[attributes.outcome === "success" ? "success" : "failed"] += Number(metric.state.count)
    if (metric.type === "Counter" && id === "castellan_gas_paid_wei_total")
      gas.set(`${attributes.chain} ${attributes.signer}`, Number(metric.state.count))
    if (metric.type === "Histogram" && id === "castellan_inclusion_seconds")
      inclusion = [...metric.state.buckets, [Number.POSITIVE_INFINITY, metric.state.count]]
  }
  return {
    at: yield* Clock.currentTimeMillis,
    succeeded: outcomes.success,
    failed: outcomes.failed,
    inclusion,
    gas
  }
})

/** Takes the first sample now. */
export const make: Effect.Effect<Series> = Effect.gen(function* () {
  const first = yield* read
  const minutes = [first]
  const hours = [first]
  return {
    sample: Effect.map(read, (sample) => {
      minutes.push(sample)
      if (minutes.length > 60) minutes.shift()
      const last = hours.at(-1) ?? first
      if (sample.at - last.at < 3_600_000) return
      hours.push(sample)
      if (hours.length > 24) hours.shift()
    }),
    hour: Effect.map(read, (now) => [...minutes, now]),
    day: Effect.map(read, (now) => [...hours, now])
  }
})

/** Applies `of` to each pair of consecutive samples. */
export const steps = <A>(
  samples: ReadonlyArray<Sample>,
  of: (before: Sample, after: Sample) => A
): ReadonlyArray<A> => samples.slice(1).map((after, at) => of(samples[at] ?? after, after))

/** Seconds in which this share (0 to 1) of the ops between two samples was included; null: no ops. */
export const percentile = (before: Sample, after: Sample, share: number): number | null => {
  const earlier = new Map(before.inclusion)
  const counts = after.inclusion.map(([bound, count]) => [bound, count - (earlier.get(bound) ?? 0)] as const)
  const all = counts.at(-1)?.[1] ?? 0
  if (all === 0) return null
  let [lower, below] = [0, 0]
  for (const [bound, count] of counts) {
    if (count >= share * all)
      return Number.isFinite(bound)
        ? lower + ((bound - lower) * (share * all - below)) / Math.max(1, count - below)
        : lower
    ;[lower, below] = [bound, count]
  }
  return lower
}

/** Wei per day that an EOA pays for gas, by the samples; null: they span less than ten minutes, or it paid nothing. */
export const dailyGas = (samples: ReadonlyArray<Sample>, chainId: bigint, signer: string): number | null => {
  const [first, last] = [samples.at(0), samples.at(-1)]
  if (first === undefined || last === undefined || last.at - first.at < 600_000) return null
  const name = `${chainId} ${signer}`
  const paid = (last.gas.get(name) ?? 0) - (first.gas.get(name) ?? 0)
  return paid > 0 ? (paid * 86_400_000) / (last.at - first.at) : null
}
