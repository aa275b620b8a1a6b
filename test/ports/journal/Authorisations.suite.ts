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
  })
}
