import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type Principal, type Scope, Tenants } from "../../src/application/ports/Tenants.js"

/** A key and its holder. */
export interface Held {
  readonly key: Redacted.Redacted<string>
  readonly principal: Principal
}

/** The adapter holds exactly these keys. */
export const suite = (
  name: string,
  layer: Layer.Layer<Tenants>,
  held: ReadonlyArray<Held>,
  fresh: Redacted.Redacted<string>
): void => {
  const authenticate = (key: Redacted.Redacted<string>) =>
    Effect.flatMap(Tenants, (accounts) => accounts.authenticate(key))
  const fact = (text: string, body: Effect.Effect<void, unknown, Tenants>) =>
    it.effect(text, () => Effect.provide(body, layer))

  describe(`accounts in ${name}`, () => {
    fact(
      "a key identifies its holder",
      Effect.gen(function* () {
        for (const { key, principal } of held) {
          const found = yield* authenticate(key)
          expect(found).toEqual(principal)
          const scopes: ReadonlySet<Scope> = found?.scopes ?? new Set()
          expect([...scopes].sort()).toEqual([...principal.scopes].sort())
        }
      })
    )

    fact(
      "a key that was never issued, or is not exactly the whole key, is rejected",
      Effect.gen(function* () {
        for (const { key } of held) {
          const text = Redacted.value(key)
          const others = [
            Redacted.value(fresh),
            "",
            " ",
            "cst_",
            text.slice(0, -1),
            `${text}A`,
            ` ${text}`,
            `${text}\n`,
            `${text}\0`,
            text.toUpperCase(),
            text.slice(4),
            `${text},${text}`,
            "__proto__",
            "cst_".padEnd(1_000_000, "A"),
            "\ud800"
          ]
          for (const other of others) expect(yield* authenticate(Redacted.make(other))).toBeNull()
        }
      })
    )
  })
}
