import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { accept } from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Make from "../../support/journal/Make.js"

const accepted = { _tag: "accepted" }

export const suite = (name: string, layer: Layer.Layer<Journals.Ports>): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, Journals.Ports>) =>
    it.effect(text, () => Effect.provide(body, layer))

  describe(`authorisations of deployments in ${name}`, () => {
    fact(
      "authorisations of another chain, factory or salt do not meet",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const configHash = Make.word(0xc2)
        yield* accept(journal, Make.acceptance("r1", [], { deployments: [Make.deployment()] }))
        const deployments = [
          Make.deployment({ configHash, create2Salt: Make.word(2) }),
          Make.deployment({ configHash, factory: Make.address(0xfad) })
        ]
        expect(yield* accept(journal, Make.acceptance("r2", [], { deployments }))).toEqual(accepted)
        const elsewhere = [Make.deployment({ configHash, chainId: 1n })]
        expect(
          yield* accept(
            journal,
            Make.acceptance("r3", [], { lane: { ...Make.lane, chainId: 1n }, deployments: elsewhere })
          )
        ).toEqual(accepted)
      })
    )

    fact(
      "an authorisation for no request stands in the way of another configuration until it is over, and the other way round",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const unbound = Make.deployment({ create2Salt: Make.word(2) })
        const other = (more: object) => Make.deployment({ configHash: Make.word(0xc2), ...more })
        const after = { chainTime: unbound.deadline + 1, deadline: unbound.deadline + 600 }
        expect(yield* journal.authorise(unbound)).toBe(true)
        expect(yield* journal.authorise(unbound)).toBe(true)
        expect(yield* journal.authorise({ ...other({}), create2Salt: unbound.create2Salt })).toBe(false)
        const creation = (id: string, intent: ReturnType<typeof Make.deployment>) =>
          accept(journal, Make.acceptance(id, [], { deployments: [intent] }))
        const refused = { _tag: "otherConfiguration", deployment: 0 }
        expect(yield* creation("r1", other({ create2Salt: Make.word(2) }))).toEqual(refused)
        expect(yield* creation("r2", unbound)).toEqual(accepted)
        expect(yield* creation("r3", other({ create2Salt: Make.word(2), ...after }))).toEqual(accepted)
        expect(yield* journal.authorise({ ...unbound, ...after })).toBe(false)

        const requested = Make.deployment()
        expect(yield* creation("r4", requested)).toEqual(accepted)
        expect(yield* journal.authorise(other({}))).toBe(false)
        expect(yield* journal.authorise(requested)).toBe(true)
        expect(yield* journal.authorise(other(after))).toBe(true)
      })
    )

    fact(
      "an authorisation for no request is forgotten long after its deadline",
      Effect.gen(function* () {
        const journal = yield* Journals.all
        const intent = Make.deployment({ deadline: 2_000, chainTime: 1_000 })
        const other = { ...intent, configHash: Make.word(0xc2) }
        expect(yield* journal.authorise(intent)).toBe(true)
        yield* journal.forget(2_000_000)
        expect(yield* journal.authorise(other)).toBe(false)
        yield* journal.forget(2_001_000)
        expect(yield* journal.authorise(other)).toBe(true)
      })
    )
  })
}
