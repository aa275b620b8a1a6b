import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { NetworkProfile } from "../../src/application/ports/NetworkProfile.js"
import { Networks } from "../../src/application/ports/Networks.js"
import { accountId, alice, bob } from "../support/journal/Make.js"

/** The adapter has these profiles, and an override of the first one for alice. */
export const suite = (
  name: string,
  layer: Layer.Layer<Networks>,
  profiles: readonly [NetworkProfile, ...Array<NetworkProfile>],
  override: Partial<NetworkProfile>
): void => {
  const fact = (text: string, body: Effect.Effect<void, unknown, Networks>) =>
    it.effect(text, () => Effect.provide(body, layer))

  describe(`network profiles in ${name}`, () => {
    fact(
      "the chains are those with a profile",
      Effect.gen(function* () {
        const networks = yield* Networks
        expect(yield* networks.chainIds).toEqual(profiles.map((profile) => profile.chainId))
        expect(yield* networks.profile(alice, 424_242n)).toBeNull()
        expect(yield* networks.profile(alice, -1n)).toBeNull()
      })
    )

    fact(
      "an account has its own values where it has any, and the operator's elsewhere",
      Effect.gen(function* () {
        const networks = yield* Networks
        const [first, ...rest] = profiles
        expect(yield* networks.profile(alice, first.chainId)).toEqual({ ...first, ...override })
        for (const profile of rest) expect(yield* networks.profile(alice, profile.chainId)).toEqual(profile)
      })
    )

    fact(
      "an account sees no values of another account",
      Effect.gen(function* () {
        const networks = yield* Networks
        for (const account of [bob, ...["", "alice ", "__proto__"].map(accountId)])
          for (const profile of profiles)
            expect(yield* networks.profile(account, profile.chainId)).toEqual(profile)
      })
    )
  })
}
