import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as MetricKey from "effect/MetricKey"
import * as MetricState from "effect/MetricState"
import * as Option from "effect/Option"

/** Text of Prometheus's exposition format 0.0.4. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/** Only what the service itself measures; the runtime has figures of its own. */
const own = "castellan_"

const escaped = (text: string): string =>
  text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const labelsOf = (
  key: MetricKey.MetricKey.Untyped,
  more: ReadonlyArray<readonly [string, string]> = []
): string => {
  const labels = [...[...key.tags].map(({ key, value }) => [key, value] as const), ...more]
  return labels.length === 0
    ? ""
    : `{${labels.map(([name, value]) => `${name}="${escaped(value)}"`).join(",")}}`
}

const number = (value: number | bigint): string =>
  value === Number.POSITIVE_INFINITY ? "+Inf" : value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value)

interface Family {
  readonly type: string
  readonly help: string
  readonly lines: Array<string>
}

/** The lines of one metric with its labels. */
const linesOf = (
  key: MetricKey.MetricKey.Untyped,
  state: MetricState.MetricState.Untyped
): { readonly type: string; readonly lines: ReadonlyArray<string> } => {
  const { name } = key
  if (MetricState.isCounterState(state))
    return { type: "counter", lines: [`${name}${labelsOf(key)} ${number(state.count)}`] }
  if (MetricState.isGaugeState(state))
    return { type: "gauge", lines: [`${name}${labelsOf(key)} ${number(state.value)}`] }
  if (MetricState.isHistogramState(state)) {
    const buckets = state.buckets.filter(([boundary]) => Number.isFinite(boundary))
    return {
      type: "histogram",
      lines: [
        ...[...buckets, [Number.POSITIVE_INFINITY, state.count] as const].map(
          ([boundary, count]) => `${name}_bucket${labelsOf(key, [["le", number(boundary)]])} ${count}`
        ),
        `${name}_sum${labelsOf(key)} ${number(state.sum)}`,
        `${name}_count${labelsOf(key)} ${state.count}`
      ]
    }
  }
  return { type: "untyped", lines: [] }
}

/** Everything measured so far. */
export const text: Effect.Effect<string> = Effect.map(Metric.snapshot, (pairs) => {
  const families = new Map<string, Family>()
  for (const { metricKey, metricState } of pairs) {
    const { description, name } = metricKey
    if (!name.startsWith(own)) continue
    const { lines, type } = linesOf(metricKey, metricState)
    const family = families.get(name) ?? {
      type,
      help: Option.getOrElse(description, () => ""),
      lines: []
    }
    family.lines.push(...lines)
    families.set(name, family)
  }
  return [...families]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { help, lines, type }]) =>
      [
        `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
        `# TYPE ${name} ${type}`,
        ...lines,
        ""
      ].join("\n")
    )
    .join("")
})
