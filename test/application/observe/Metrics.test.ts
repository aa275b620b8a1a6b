import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Metrics from "../../../src/application/observe/Metrics.js"

describe("a figure with labels", () => {
  it.effect("is one for the same labels, and another one for others", () =>
    Effect.gen(function* () {
      const counter = Metric.counter("figure_with_labels", { incremental: true })
      yield* Metrics.count(counter, { node: "a", reason: "x" })
      yield* Metrics.count(counter, { node: "a", reason: "x" })
      yield* Metrics.count(counter, { node: "b", reason: "x" })
      const of = (node: string) =>
        Metric.value(counter.pipe(Metric.tagged("node", node), Metric.tagged("reason", "x")))
      expect([(yield* of("a")).count, (yield* of("b")).count]).toEqual([2, 1])
    })
  )

  it.effect("of a gauge is the last value, and of a histogram all of them", () =>
    Effect.gen(function* () {
      const labels = { chain: "0", signer: "of this test" }
      for (const value of [3, 1]) {
        yield* Metrics.note(Metrics.lanePending, labels, value)
        yield* Metrics.note(Metrics.bundleOps, { chain: "of this test" }, value)
      }
      const pending = Metrics.lanePending.pipe(
        Metric.tagged("chain", labels.chain),
        Metric.tagged("signer", labels.signer)
      )
      expect((yield* Metric.value(pending)).value).toBe(1)
      const ops = Metric.tagged(Metrics.bundleOps, "chain", "of this test")
      expect(yield* Metric.value(ops)).toMatchObject({ count: 2, sum: 4 })
    })
  )
})
