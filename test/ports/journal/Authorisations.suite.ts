import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const accepted = { _tag: "accepted" }

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, Journals.Ports>) =>
    it.effect(text, () => Effect.provide(body, layer))

  describe(`authorisations of deployments in ${name}`, () => {
    fact(
      "one configuration of a wallet is authorised until the chain has passed its deadline",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        let request = 0
        const authorise = (over: Parameters<typeof Make.deployment>[0]) =>
          journal.accept(Make.acceptance(`r${request++}`, [], { deployments: [Make.deployment(over)] }))
        expect(yield* authorise({ deadline: 2_000 })).toEqual(accepted)
        const other = { configHash: Make.word(0xc2), deadline: 2_500 }
        expect(yield* authorise({ ...other, chainTime: 2_000 })).toEqual({
          _tag: "otherConfiguration",
          deployment: 0
        })
        expect(yield* authorise({ ...other, chainTime: 2_001 })).toEqual(accepted)
        expect(yield* authorise({ chainTime: 2_500 })).toEqual({ _tag: "otherConfiguration", deployment: 0 })
      })
    )

    fact(
      "the same configuration again lengthens its authorisation and never shortens it",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        let request = 0
        const authorise = (over: Parameters<typeof Make.deployment>[0]) =>
          journal.accept(Make.acceptance(`r${request++}`, [], { deployments: [Make.deployment(over)] }))
        yield* authorise({ deadline: 2_000 })
        expect(yield* authorise({ deadline: 3_000 })).toEqual(accepted)
        expect(yield* authorise({ deadline: 1_500 })).toEqual(accepted)
        const other = { configHash: Make.word(0xc2), deadline: 4_000 }
        expect(yield* authorise({ ...other, chainTime: 3_000 })).toMatchObject({ _tag: "otherConfiguration" })
        expect(yield* authorise({ ...other, chainTime: 3_001 })).toEqual(accepted)
      })
    )

    fact(
      "authorisations of another chain, factory or salt do not meet",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const configHash = Make.word(0xc2)
        yield* journal.accept(Make.acceptance("r1", [], { deployments: [Make.deployment()] }))
        const deployments = [
          Make.deployment({ configHash, create2Salt: Make.word(2) }),
          Make.deployment({ configHash, factory: Make.address(0xfad) })
        ]
        expect(yield* journal.accept(Make.acceptance("r2", [], { deployments }))).toEqual(accepted)
        const elsewhere = [Make.deployment({ configHash, chainId: 1n })]
        expect(
          yield* journal.accept(
            Make.acceptance("r3", [], { lane: { ...Make.lane, chainId: 1n }, deployments: elsewhere })
          )
        ).toEqual(accepted)
      })
    )

    fact(
      "two configurations of one wallet in one acceptance contradict each other",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const deployments = [Make.deployment(), Make.deployment({ configHash: Make.word(0xc2) })]
        expect(yield* journal.accept(Make.acceptance("r1", [], { deployments }))).toEqual({
          _tag: "otherConfiguration",
          deployment: 1
        })
      })
    )
  })
}
