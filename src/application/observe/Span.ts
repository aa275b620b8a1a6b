import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type { SpanOptions } from "effect/Tracer"

/**
 * Runs under a span of this name where somebody listens to spans. `Effect.withSpan` costs several microseconds also
 * where nobody does, and a stack trace.
 */
export const named =
  (name: string, options?: SpanOptions) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) =>
      fiber.getRef(References.TracerEnabled)
        ? // The compiler cannot tell that R has no parent span in it.
          (Effect.withSpan(work, name, { captureStackTrace: false, ...options }) as Effect.Effect<A, E, R>)
        : work
    )
