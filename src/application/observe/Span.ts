import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type { SpanOptions } from "effect/Tracer"

/**
 * Runs the work in a span of this name if tracing is enabled. `Effect.withSpan` costs several microseconds, and a stack
 * trace, even without a tracer.
 */
export const named =
  (name: string, options?: SpanOptions) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) =>
      fiber.getRef(References.TracerEnabled)
        ? // The compiler cannot know that R has no parent span in it.
          (Effect.withSpan(work, name, { captureStackTrace: false, ...options }) as Effect.Effect<A, E, R>)
        : work
    )
