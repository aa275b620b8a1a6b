import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as Span from "../../../src/application/observe/Span.js"

const parent = Effect.serviceOption(Tracer.ParentSpan)

describe("a named span", () => {
  it.effect("is around the work where somebody listens to spans", () =>
    Effect.gen(function* () {
      const span = Option.getOrThrow(yield* parent.pipe(Span.named("work", { kind: "client" })))
      expect(span).toMatchObject({ name: "work", kind: "client" })
    }).pipe(Effect.withTracerEnabled(true))
  )

  it.effect("is not made where nobody does", () =>
    Effect.gen(function* () {
      expect(Option.isNone(yield* parent.pipe(Span.named("work")))).toBe(true)
    }).pipe(Effect.withTracerEnabled(false))
  )
})
