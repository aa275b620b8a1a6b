import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { computeAddress, SigningKey } from "ethers"
import * as ExternalProofs from "../../../../src/application/prepare/given/ExternalProofs.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../../src/domain/signature/Conditions.js"
import * as WalletConfig from "../../../../src/domain/wallet/WalletConfig.js"
import * as Make from "../../../support/journal/Make.js"
import { test } from "../../../support/Test.js"

const key = new SigningKey(Make.word(7))
const owner = Address.unsafe(computeAddress(key.publicKey).toLowerCase())
const config = WalletConfig.ecdsa(owner)
const userOpHash = Make.word(1)
const bundler = Make.address(0xb0)
const unbounded = { validUntil: 0, validAfter: 0 }
const signed = (hash: Hex.Bytes32) => Hex.unsafe(key.sign(hash).serialized)

const termsOf = (bounds: { readonly validUntil: number; readonly validAfter: number }) => {
  const digests: Array<Hex.Bytes32> = []
  const signer = {
    address: owner,
    publicKey: "04",
    type: "PRIVATE_KEY" as const,
    sign: (digest: Hex.Bytes32) => {
      digests.push(digest)
      return Effect.succeed(signed(digest))
    }
  }
  return { digests, terms: { bounds, bundler, lastSecond: 1_000, signers: [signer] } }
}

test("what the keys of a request sign is good for ten minutes at most where the request names no end, and for its EOA alone", function* () {
  for (const [bounds, validUntil] of [
    [unbounded, 1_000],
    [{ validUntil: 500, validAfter: 3 }, 500]
  ] as const) {
    const { digests, terms } = termsOf(bounds)
    const conditions = { validUntil, validAfter: bounds.validAfter, bundler }
    const consent = yield* Effect.fromResult(
      ExternalProofs.consent({ evidence: { _tag: "keys" }, userOpHash }, config, terms)
    )
    expect(consent.conditions).toEqual(conditions)
    yield* consent.prove
    expect(digests).toEqual([Conditions.signingHash(userOpHash, conditions)])
  }
})

describe("a proof that the request brings", () => {
  const conditionsOf = (proof: Hex.Hex, bounds: Parameters<typeof termsOf>[0]) =>
    Result.match(
      ExternalProofs.consent(
        { evidence: { _tag: "proof", proof }, userOpHash },
        config,
        termsOf(bounds).terms
      ),
      { onFailure: ({ code }) => code, onSuccess: ({ conditions }) => conditions }
    )

  it("is over the window where the request names one, and nothing else stands for it", () => {
    const window = { validUntil: 500, validAfter: 3 }
    const bound = { ...window, bundler }
    expect(conditionsOf(signed(Conditions.signingHash(userOpHash, bound)), window)).toEqual(bound)
    expect(conditionsOf(signed(userOpHash), window)).toBe("invalid_signature")
    expect(conditionsOf(signed(userOpHash), unbounded)).toEqual(Conditions.none)
  })
})
