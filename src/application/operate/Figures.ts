import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

export interface Figure {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** By the metric's name without prefix. */
export type Figures = ReadonlyMap<string, ReadonlyArray<Figure>>

export const read: Effect.Effect<Figures> = Effect.map(Metric.snapshot, (metrics) => {
  const found = new Map<string, Array<Figure>>()
  for (const metric of metrics) {
    if ((metric.type !== "Counter" && metric.type !== "Gauge") || !metric.id.startsWith("castellan_"))
      continue
    const value = metric.type === "Counter" ? metric.state.count : metric.state.value
    const name = metric.id.slice("castellan_".length)
    const figure = { labels: metric.attributes ?? {}, value: Number(value) }
    found.set(name, [...(found.get(name) ?? []), figure])
  }
  return found
})
