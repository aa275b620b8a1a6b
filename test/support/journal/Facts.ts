import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import * as Journals from "./Journals.js"
import * as Make from "./Make.js"

/** Fails with a `JournalError` that leaks nothing about the database or the data. */
export const refused = <R>(effect: Effect.Effect<unknown, JournalError, R>) =>
  Effect.map(Effect.flip(effect), (error) => {
    expect(error._tag).toBe("JournalError")
    expect(error.message).not.toMatch(/0x|select|insert|update|constraint|[0-9]{3}/i)
  })

/** Accepts one op with a nonce key, a hash and an index of the same number. */
export const acceptOp = (requestId: string, n: number) =>
  Effect.flatMap(Journals.all, (journal) =>
    journal.acceptOps(
      Make.acceptance(requestId, [
        Make.op({ index: n, nonceKey: BigInt(n), userOpHash: Make.word(n), reserve: 1n })
      ])
    )
  )

/** Accepts such ops and stores a transaction that carries them: nonce 0 unless it is said. */
export const signOps = (requestId: string, ns: ReadonlyArray<number>, nonce = 0n) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    for (const n of ns) yield* acceptOp(requestId, n)
    yield* journal.allocate(Make.allocation(requestId, { ops: ns, chainNonce: nonce }))
    yield* journal.recordSigned(Make.signed(nonce))
  })

export const stateOf = (n: number) =>
  Effect.map(
    Effect.flatMap(Journals.all, (journal) => journal.findOp(Make.alice, Make.chainId, Make.word(n))),
    (op) => op?.state
  )

/** A fact about the journals of a layer, in which the request `r1` is accepted. */
export const factOf =
  (layer: Layer.Layer<Journals.Ports>) =>
  (text: string, body: Effect.Effect<void, unknown, Journals.Ports>): void =>
    it.effect(text, () =>
      Effect.provide(
        Effect.andThen(
          Effect.flatMap(Journals.all, (journal) => journal.acceptOps(Make.acceptance("r1", []))),
          body
        ),
        layer
      )
    )
