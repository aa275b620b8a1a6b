import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { computeAddress, SigningKey } from "ethers"
import * as ExternalProofs from "../../../../src/application/prepare/given/ExternalProofs.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../../src/domain/signature/Conditions.js"
import * as WalletConfig from "../../../../src/domain/wallet/WalletConfig.js"
import * as Make from "../../../support/journal/Make.js"

const key = new SigningKey(Make.word(7))
const owner = Address.unsafe(computeAddress(key.publicKey).toLowerCase())
const config = WalletConfig.ecdsa(owner)
const userOpHash = Make.word(1)
const bundler = Make.address(0xb0)
const unbounded = { validUntil: 0, validAfter: 0 }
const signed = (hash: Hex.Bytes32) => Hex.unsafe(key.sign(hash).serialized)

type Bounds = ExternalProofs.Terms["bounds"]

describe("a proof that the request brings", () => {
  const conditionsOf = (proof: Hex.Hex, bounds: Bounds) =>
    Result.match(ExternalProofs.consent({ _tag: "proof", proof }, userOpHash, config, { bounds, bundler }), {
      onFailure: ({ code }) => code,
      onSuccess: ({ conditions }) => conditions
    })

  it("covers the window where the request names one, and no other field stands in for it", () => {
    const window = { validUntil: 500, validAfter: 3 }
    const bound = { ...window, bundler }
    expect(conditionsOf(signed(Conditions.signingHash(userOpHash, bound)), window)).toEqual(bound)
    expect(conditionsOf(signed(userOpHash), window)).toBe("invalid_signature")
    expect(conditionsOf(signed(userOpHash), unbounded)).toEqual(Conditions.none)
  })
})
