import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as MetricState from "effect/MetricState"

/** One value of a counter or a gauge, with its labels. */
export interface Figure {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** What was measured so far, by the name of the metric without its prefix. */
export const read: Effect.Effect<ReadonlyMap<string, ReadonlyArray<Figure>>> = Effect.map(
  Metric.snapshot,
  (pairs) => {
    const found = new Map<string, Array<Figure>>()
    for (const { metricKey, metricState } of pairs) {
      const value = MetricState.isCounterState(metricState)
        ? metricState.count
        : MetricState.isGaugeState(metricState)
          ? metricState.value
          : null
      if (value === null || !metricKey.name.startsWith("castellan_")) continue
      const name = metricKey.name.slice("castellan_".length)
      const labels = Object.fromEntries([...metricKey.tags].map((tag) => [tag.key, tag.value]))
      found.set(name, [...(found.get(name) ?? []), { labels, value: Number(value) }])
    }
    return found
  }
)
