import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

type Body<R> = () => Generator<Effect.Effect<unknown, unknown, R | Scope.Scope>, unknown, never>

const run = <R>(body: Body<R>) =>
  Effect.gen(body as Body<never>) as Effect.Effect<unknown, unknown, R | Scope.Scope>

/** A test whose body yields effects, in its own scope and on a clock that only `Time` moves. */
export const test = (name: string, body: Body<never>): void => it.effect(name, () => run(body))

/** Likewise, with fresh services for each test. */
export const testOver =
  <R>(layer: Layer.Layer<R, unknown>) =>
  (name: string, body: Body<R>): void =>
    it.effect(name, () => Effect.provide(run(body), layer))
