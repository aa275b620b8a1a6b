import * as Effect from "effect/Effect"
import { type Problem, problem, retryAfter } from "../ErrorEnvelope.js"
import type { Gate } from "../Gate.js"

/** The endpoints that need no key, by name. */
export const handlers = (gate: Gate): Record<string, Effect.Effect<unknown, Problem>> => ({
  live: Effect.succeed({ status: "live" }),
  ready: Effect.suspend(() =>
    gate.stopping
      ? Effect.fail(problem("shutting_down", [], { headers: retryAfter(5) }))
      : Effect.succeed({ status: "ready" })
  )
})

/** Headers of their own, by endpoint. */
export const headers: Readonly<Record<string, Readonly<Record<string, string>>>> = {}
