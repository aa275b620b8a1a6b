import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as fc from "fast-check"
import type { InvalidValue } from "../../../src/domain/primitives/InvalidValue.js"
import * as Custody from "../../../src/domain/wallet/Custody.js"
import { forAll } from "../generators.js"

const strange = [-1, 6, 7, 255, 256, 1.5, -0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1e21]

const refusal = <A>(result: Result.Result<A, InvalidValue>) =>
  Result.match(result, { onFailure: ({ message, type }) => [type, message], onSuccess: () => null })

describe("Custody", () => {
  it("a custody is an integer from 0 to 5, and from 1 to 5 once stored", () => {
    forAll([fc.oneof(fc.integer(), fc.double(), fc.integer({ min: 0, max: 5 }))], (value) => {
      const known = [0, 1, 2, 3, 4, 5].includes(value)
      expect(Result.isSuccess(Custody.from(value))).toBe(known)
      expect(Result.isSuccess(Custody.ofWallet(value))).toBe(known && value !== 0)
    })
    for (const value of strange)
      expect(refusal(Custody.from(value))).toEqual(["Custody", "invalid wallet custody type"])
    expect(refusal(Custody.ofWallet(0))).toEqual(["Custody", "invalid wallet custody type"])
  })

  it("an unknown custody is refused on the wire in the API's words", () => {
    for (const decode of [
      Schema.decodeUnknownResult(Custody.schema),
      Schema.decodeUnknownResult(Custody.storedSchema)
    ]) {
      for (const value of [...strange, "1", null, true, [1], {}])
        expect(
          Result.mapError(
            decode(value),
            (error) => SchemaIssue.makeFormatterStandardSchemaV1()(error.issue).issues[0]?.message
          )
        ).toEqual(Result.fail("invalid wallet custody type"))
      for (const value of [1, 2, 3, 4, 5]) expect(decode(value)).toEqual(Result.succeed(value))
    }
    expect(Result.isFailure(Schema.decodeUnknownResult(Custody.storedSchema)(0))).toBe(true)
  })

  it.each([
    [0, "UNSPECIFIED", false, false, false],
    [1, "ECDSA", false, false, true],
    [2, "ECDSA_PASSKEY", false, true, true],
    [3, "MULTISIG", true, false, false],
    [4, "MULTISIG_PASSKEY", true, true, false],
    [5, "PASSKEY", false, true, false]
  ] as const)("%i is %s and needs the right fields", (custody, name, signers, passkeys, owner) => {
    expect(Custody.names[custody]).toBe(name)
    expect(Custody.usesSigners(custody)).toBe(signers)
    expect(Custody.usesPasskeys(custody)).toBe(passkeys)
    expect(Custody.ownerIsSigner(custody)).toBe(owner)
  })
})
