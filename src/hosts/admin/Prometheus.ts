import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** Text of Prometheus's exposition format 0.0.4. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/** Only what the service itself measures; the runtime has figures of its own. */
const own = "castellan_"

const escaped = (text: string): string =>
  text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const labelsOf = (
  { attributes = {} }: Metric.Metric.Snapshot,
  more: Readonly<Record<string, string>> = {}
): string => {
  const labels = Object.entries({ ...attributes, ...more })
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
  metric: Metric.Metric.Snapshot
): { readonly type: string; readonly lines: ReadonlyArray<string> } => {
  const { id } = metric
  if (metric.type === "Counter")
    return { type: "counter", lines: [`${id}${labelsOf(metric)} ${number(metric.state.count)}`] }
  if (metric.type === "Gauge")
    return { type: "gauge", lines: [`${id}${labelsOf(metric)} ${number(metric.state.value)}`] }
  if (metric.type === "Histogram") {
    const buckets = metric.state.buckets.filter(([boundary]) => Number.isFinite(boundary))
    return {
      type: "histogram",
      lines: [
        ...[...buckets, [Number.POSITIVE_INFINITY, metric.state.count] as const].map(
          ([boundary, count]) => `${id}_bucket${labelsOf(metric, { le: number(boundary) })} ${count}`
        ),
        `${id}_sum${labelsOf(metric)} ${number(metric.state.sum)}`,
        `${id}_count${labelsOf(metric)} ${metric.state.count}`
      ]
    }
  }
  return { type: "untyped", lines: [] }
}

/** Everything measured so far. */
export const text: Effect.Effect<string> = Effect.map(Metric.snapshot, (metrics) => {
  const families = new Map<string, Family>()
  for (const metric of metrics) {
    const { description, id } = metric
    if (!id.startsWith(own)) continue
    const { lines, type } = linesOf(metric)
    const family = families.get(id) ?? { type, help: description ?? "", lines: [] }
    family.lines.push(...lines)
    families.set(id, family)
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
