import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, getBytes, hashMessage, recoverAddress, SigningKey, Wallet } from "ethers"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Proof from "../../../src/domain/signature/Proof.js"
import { ecdsaSigners } from "../../support/suite/Signers.js"
import { bytes32, forAll, hex } from "../generators.js"

const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const digits = (value: bigint) => value.toString(16).padStart(64, "0")
const rsv = (r: bigint, s: bigint, v: number) =>
  Hex.unsafe(`0x${digits(r)}${digits(s)}${v.toString(16).padStart(2, "0")}`)

const key = fc
  .bigInt({ min: 1n, max: n - 1n })
  .map((value) => new Wallet(new SigningKey(`0x${digits(value)}`)))
const sign = (hash: string, by: Wallet) => Hex.unsafe(by.signingKey.sign(hash).serialized)
const message = (result: Result.Result<Hex.Hex, string>) => Result.merge(result)

/** The same signature in its other form. */
const highForm = (signature: Hex.Hex): Hex.Hex => {
  const s = BigInt(`0x${signature.slice(66, 130)}`)
  return Hex.unsafe(`${signature.slice(0, 66)}${digits(n - s)}${signature.endsWith("1b") ? "1c" : "1b"}`)
}

const few = { numRuns: 20 }

describe("Proof", () => {
  it("a proof by ethers is normal already; v 0 or 1 is raised to 27 or 28", () => {
    forAll(
      [bytes32, fc.array(key, { minLength: 1, maxLength: 16 })],
      (hash, keys) => {
        const signatures = keys.map((each) => sign(hash, each))
        const proof = Hex.concat(...signatures)
        const parity = Hex.concat(
          ...signatures.map((each) => Hex.unsafe(each.slice(0, 130) + (each.endsWith("1b") ? "00" : "01")))
        )
        expect(Proof.normalise(proof)).toEqual(Result.succeed(proof))
        expect(Proof.normalise(parity)).toEqual(Result.succeed(proof))
      },
      few
    )
  })

  it("a proof of compact signatures (EIP-2098) by ethers equals one of whole signatures", () => {
    forAll(
      [bytes32, fc.array(key, { minLength: 1, maxLength: 16 })],
      (hash, keys) => {
        const signatures = keys.map((each) => each.signingKey.sign(hash))
        const whole = Hex.concat(...signatures.map(({ serialized }) => Hex.unsafe(serialized)))
        const compact = Hex.concat(
          ...signatures.map(({ compactSerialized }) => Hex.unsafe(compactSerialized))
        )
        expect(Proof.normalise(compact)).toEqual(Result.succeed(whole))
        // In the ABI form too, with or without passkeys.
        const abi = (ecdsa: string) =>
          Hex.unsafe(
            AbiCoder.defaultAbiCoder().encode(
              ["bytes", "tuple(uint8,tuple(bytes32,bytes32,uint256,uint256,bytes,string))[]"],
              [ecdsa, []]
            )
          )
        expect(Proof.normalise(abi(compact))).toEqual(Result.succeed(whole))
        expect(Proof.normalise(abi(whole))).toEqual(Result.succeed(whole))
      },
      few
    )
  })

  it("a compact proof is refused next to whole signatures, above 16, and out of range", () => {
    const whole = rsv(n - 1n, n / 2n, 27)
    const compact = whole.slice(0, 130)
    for (const [text, parts] of [
      ["65 bytes (r, s, v) or of 64 (EIP-2098)", [compact, whole]],
      ["expected abi.encode", Array<string>(17).fill(compact)],
      ["r is not between", [`0x${digits(0n)}${digits(1n)}`]],
      ["upper half", [`0x${digits(1n)}${digits(n / 2n + 1n)}`]]
    ] as const)
      expect(message(Proof.normalise(Hex.concat(...parts.map(Hex.unsafe))))).toContain(text)
  })

  it("a proof with s in the upper half is refused, and has no signers", () => {
    forAll(
      [bytes32, key, fc.nat(3)],
      (hash, by, place) => {
        const good = sign(hash, by)
        const high = highForm(good)
        const parts = Array.from({ length: 4 }, (_, index) => (index === place ? high : good))
        expect(message(Proof.normalise(Hex.concat(...parts)))).toBe(
          `signature ${place}: s is in the upper half: only the low form of a signature is accepted`
        )
        expect(ecdsaSigners(hash, high)).toEqual([[null, null]])
      },
      few
    )
    expect(Result.isSuccess(Proof.normalise(rsv(1n, n / 2n, 27)))).toBe(true)
    expect(message(Proof.normalise(rsv(1n, n / 2n + 1n, 27)))).toContain("upper half")
  })

  it.each([
    ["r of zero", rsv(0n, 1n, 27), "signature 0: r is not between"],
    ["r of the order", rsv(n, 1n, 27), "signature 0: r is not between"],
    ["s of zero", rsv(1n, 0n, 27), "signature 0: s is not between"],
    ["s of the order", rsv(1n, n, 27), "signature 0: s is not between"],
    ["v 2", rsv(1n, 1n, 2), "signature 0: v is 2, expected"],
    ["v 26", rsv(1n, 1n, 26), "signature 0: v is 26, expected"],
    ["v 29", rsv(1n, 1n, 29), "signature 0: v is 29, expected"],
    ["v 37 (EIP-155)", rsv(1n, 1n, 37), "signature 0: v is 37, expected"],
    ["a bad second one", Hex.concat(rsv(1n, 1n, 27), rsv(1n, 1n, 255)), "signature 1: v is 255, expected"]
  ])("a proof is refused with %s", (_, proof, text) => {
    expect(message(Proof.normalise(proof))).toContain(text)
  })

  it("a proof has 65 bytes, or 64, 1 to 16 times", () => {
    const part = rsv(1n, 1n, 27)
    for (const count of [1, 2, 16])
      expect(Result.isSuccess(Proof.normalise(Hex.concat(...Array(count).fill(part))))).toBe(true)
    for (const proof of [Hex.empty, Hex.concat(...Array(17).fill(part)), Hex.unsafe(`${part}00`)])
      expect(message(Proof.normalise(proof))).toContain("expected 1 to 16 signatures of 65 bytes")
    forAll([hex(1200)], (proof) => {
      const size = Hex.size(proof)
      if (Result.isSuccess(Proof.normalise(proof)))
        expect(size > 0 && ((size % 65 === 0 && size <= 1_040) || (size % 64 === 0 && size <= 1_024))).toBe(
          true
        )
    })
  })

  it("a proof names the signers over the hash and over its EIP-191 form, as ethers does", () => {
    forAll(
      [bytes32, key, key],
      (hash, first, second) => {
        const personal = hashMessage(getBytes(hash))
        expect(Proof.eip191(hash)).toBe(personal)
        const proof = Hex.concat(sign(hash, first), sign(personal, second))
        const [a, b] = ecdsaSigners(hash, proof)
        expect(a).toEqual([first.address, recoverAddress(personal, sign(hash, first))])
        expect(b).toEqual([recoverAddress(hash, sign(personal, second)), second.address])
      },
      few
    )
  })

  it("a proof that recovers to no key has no signers, and no bytes throw", () => {
    expect(ecdsaSigners(Hex.unsafe32(`0x${"11".repeat(32)}`), rsv(5n, 1n, 27))).toEqual([[null, null]])
    forAll([bytes32, hex(200)], (hash, proof) => {
      expect(ecdsaSigners(hash, proof)).toHaveLength(Math.floor(Hex.size(proof) / 65))
    })
  })

  it("an estimation proof has the real length, passes the curve, and has no known signer", () => {
    forAll(
      [fc.integer({ min: 1, max: 16 }), bytes32],
      (count, hash) => {
        const dummy = Proof.dummyEcdsa(count)
        expect(Proof.normalise(dummy)).toEqual(Result.succeed(dummy))
        expect(Hex.size(dummy)).toBe(65 * count)
        expect(dummy.slice(2).match(/../g)).not.toContain("00")
        const signers = ecdsaSigners(hash, dummy).flat()
        expect(signers).not.toContain(null)
        expect(new Set(signers).size).toBe(2 * count)
      },
      { numRuns: 5 }
    )
  })

  it.each([
    [0, 1],
    [-3, 1],
    [2.9, 2],
    [Number.NaN, 1],
    [17, 16],
    [Number.POSITIVE_INFINITY, 16]
  ])("for estimation of %s signatures is of %i", (asked, given) => {
    expect(Hex.size(Proof.dummyEcdsa(asked))).toBe(65 * given)
  })
})
