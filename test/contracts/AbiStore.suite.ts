import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Layer from "effect/Layer"
import { AbiStore } from "../../src/application/ports/AbiStore.js"
import * as ErrorDefinition from "../../src/domain/abi/ErrorDefinition.js"
import * as EventDefinition from "../../src/domain/abi/Event.js"
import { alice, bob } from "../support/journal/Make.js"

const event = (text: string) => Either.getOrThrow(EventDefinition.parse(text))
const error = (text: string) => Either.getOrThrow(ErrorDefinition.parse(text))

const transfer = event("event Transfer(address indexed from, address indexed to, uint256 value)")
const deposit = event("event Deposit(address indexed from, uint256 value)")
const broke = error("error Broke(uint256 missing)")

export const suite = (name: string, layer: Layer.Layer<AbiStore>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, AbiStore>) =>
    it.effect(text, () => Effect.provide(body, layer))

  describe(`definitions in ${name}`, () => {
    fact(
      "an account begins without definitions",
      Effect.gen(function* () {
        const store = yield* AbiStore
        expect(yield* store.events(alice)).toEqual([])
        expect(yield* store.errors(alice)).toEqual([])
      })
    )

    fact(
      "what was registered is read back, in the order of registration",
      Effect.gen(function* () {
        const store = yield* AbiStore
        yield* store.addEvent(alice, transfer)
        yield* store.addEvent(alice, deposit)
        yield* store.addError(alice, broke)
        expect(yield* store.events(alice)).toEqual([transfer, deposit])
        expect(yield* store.errors(alice)).toEqual([broke])
      })
    )

    fact(
      "the same canonical definition again changes nothing",
      Effect.gen(function* () {
        const store = yield* AbiStore
        yield* store.addEvent(alice, transfer)
        yield* store.addEvent(alice, event("Transfer (address indexed from,address indexed to,uint value)"))
        yield* store.addError(alice, broke)
        yield* store.addError(alice, error("Broke(uint missing)"))
        expect(yield* store.events(alice)).toEqual([transfer])
        expect(yield* store.errors(alice)).toEqual([broke])
      })
    )

    fact(
      "definitions of one selector that differ in names or indexing are several",
      Effect.gen(function* () {
        const store = yield* AbiStore
        const other = event("event Transfer(address indexed from, address indexed to, uint256 indexed id)")
        yield* store.addEvent(alice, transfer)
        yield* store.addEvent(alice, other)
        expect(yield* store.events(alice)).toEqual([transfer, other])
      })
    )

    fact(
      "an account sees nothing of another one",
      Effect.gen(function* () {
        const store = yield* AbiStore
        yield* store.addEvent(alice, transfer)
        yield* store.addError(alice, broke)
        expect(yield* store.events(bob)).toEqual([])
        expect(yield* store.errors(bob)).toEqual([])
      })
    )

    fact(
      "what was read does not change with what is registered later",
      Effect.gen(function* () {
        const store = yield* AbiStore
        yield* store.addEvent(alice, transfer)
        const read = yield* store.events(alice)
        yield* store.addEvent(alice, deposit)
        expect(read).toEqual([transfer])
      })
    )

    fact(
      "10,000 definitions fit, one more is refused, and what is there may be registered again",
      Effect.gen(function* () {
        const store = yield* AbiStore
        for (let n = 0; n < 9_999; n++)
          yield* store.addEvent(alice, { ...transfer, canonical: `event E${n}()`, name: `E${n}` })
        yield* store.addError(alice, broke)
        const refused = yield* Effect.flip(store.addEvent(alice, transfer))
        expect(refused).toMatchObject({ _tag: "AbiStoreError", reason: "full" })
        expect(yield* Effect.flip(store.addError(alice, error("error Other()")))).toMatchObject({
          reason: "full"
        })
        yield* store.addError(alice, broke)
        yield* store.addEvent(alice, { ...transfer, canonical: "event E7()", name: "E7" })
        expect((yield* store.events(alice)).length).toBe(9_999)
        yield* store.addEvent(bob, transfer)
        expect(yield* store.events(bob)).toEqual([transfer])
      })
    )
  })
}
