import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import * as Redacted from "effect/Redacted"

export interface Options {
  /** Base URL of the collector; `/v1/traces` and `/v1/metrics` are appended. */
  readonly url: Redacted.Redacted<string>
  /** The collector's `Authorization` header; null: none. */
  readonly authorization: Redacted.Redacted<string> | null
  readonly intervalMillis: number
}

/** Sends traces and metrics to an OpenTelemetry collector, as JSON over HTTP. Logs stay on standard output. */
export const layer = ({ authorization, intervalMillis, url }: Options): Layer.Layer<never> => {
  const base = Redacted.value(url).replace(/\/+$/, "")
  const common = {
    resource: { serviceName: "castellan" },
    exportInterval: intervalMillis,
    ...(authorization !== null && { headers: { authorization: Redacted.value(authorization) } })
  }
  return Layer.mergeAll(
    OtlpTracer.layer({ ...common, url: `${base}/v1/traces` }),
    OtlpMetrics.layer({ ...common, url: `${base}/v1/metrics` })
  ).pipe(Layer.provide([FetchHttpClient.layer, OtlpSerialization.layerJson]))
}
