import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder } from "ethers"
import * as fc from "fast-check"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as ClientData from "../../../src/domain/signature/ClientData.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import * as Proof from "../../../src/domain/signature/Proof.js"
import * as WebAuthn from "../../../src/domain/signature/WebAuthn.js"
import { newPasskey } from "../../support/suite/Keys.js"
import * as Work from "../../support/Work.js"
import { address, bytes32, forAll, hex, mutated, uint, uint48 } from "../generators.js"

const type =
  "tuple(uint8 index, tuple(bytes32 r, bytes32 s, uint256 challengeIndex, uint256 typeIndex, bytes authenticatorData, string clientDataJSON) auth)[]"
const coder = AbiCoder.defaultAbiCoder()
const ethersProof = ({ ecdsa, passkeys }: Proof.Parts) => coder.encode(["bytes", type], [ecdsa, passkeys])

const part: fc.Arbitrary<Proof.PasskeyPart> = fc.record({
  index: fc.integer({ min: 0, max: 255 }),
  auth: fc.record({
    r: bytes32,
    s: bytes32,
    challengeIndex: uint(256),
    typeIndex: uint(256),
    authenticatorData: hex(WebAuthn.maxAuthenticatorData),
    clientDataJSON: fc.string({ unit: "grapheme", maxLength: 200 })
  })
})
const ecdsa = fc
  .tuple(fc.nat(16), fc.uint8Array({ minLength: 65, maxLength: 65 }))
  .map(([count, bytes]) => Hex.concat(...Array.from({ length: count }, () => Hex.fromBytes(bytes))))
const parts = fc.record({ ecdsa, passkeys: fc.array(part, { minLength: 1, maxLength: 4 }) })
const why = (proof: Hex.Hex) => Result.getOrThrow(Result.flip(Proof.decode(proof)))

describe("A proof with passkeys", () => {
  it("a proof is encoded as by ethers, and parsed back", () => {
    forAll([parts], (it) => {
      const proof = Proof.encode(it)
      expect(proof).toBe(ethersProof(it))
      expect(Proof.decode(proof)).toEqual(Result.succeed(it))
      expect(Hex.size(proof) % 32).toBe(0)
    })
  })

  it("a proof without passkeys is only its signatures, and its ABI form is read too", () => {
    forAll([ecdsa.filter((it) => it !== Hex.empty)], (it) => {
      const alone = { ecdsa: it, passkeys: [] }
      expect(Proof.encode(alone)).toBe(it)
      expect(Proof.decode(it)).toEqual(Result.succeed(alone))
      expect(Proof.decode(Hex.unsafe(ethersProof(alone)))).toEqual(Result.succeed(alone))
      expect(Proof.signatures(it)).toBe(Hex.size(it) / 65)
    })
  })

  it("a proof has one encoding: a changed one decodes to another proof", () => {
    forAll(
      [mutated(parts.map(Proof.encode))],
      ([right, wrong]) => {
        const read = Proof.decode(wrong)
        if (Result.isSuccess(read)) expect(Proof.encode(read.success)).toBe(wrong)
        if (wrong !== right) expect(read).not.toEqual(Proof.decode(right))
      },
      { numRuns: 400 }
    )
  })

  it("a malformed proof is refused with the expected form", () => {
    expect(why(Hex.empty)).toContain("or the ABI form with passkeys, but the proof has 0 bytes")
    expect(why(Hex.unsafe(`0x${"11".repeat(66)}`))).toContain("but the proof has 66 bytes")
    expect(why(Hex.unsafe(`0x${"11".repeat(64)}`))).toContain(
      "expected abi.encode(bytes ecdsa, PasskeyProof[]"
    )
    const bad = (it: Hex.Hex) => Hex.unsafe(coder.encode(["bytes", type], [it, []]))
    for (const size of [1, 64, 66, 1105])
      expect(why(bad(Hex.unsafe(`0x${"11".repeat(size)}`)))).toContain(`but ecdsa has ${size} bytes`)
    const [one] = fc.sample(part, 1)
    const seventeen = Array.from({ length: 17 }, () => one)
    expect(why(Hex.unsafe(coder.encode(["bytes", type], ["0x", seventeen])))).toMatch(
      /at most (16 passkeys|\d+ bytes)/
    )
    const latin1 = coder
      .encode(["bytes", type], ["0x", [{ ...one, auth: { ...one?.auth, clientDataJSON: "x" } }]])
      .replace(/78(?=(00)*$)/, "ff")
    expect(why(Hex.unsafe(latin1))).toBe("passkey 0: expected clientDataJSON in UTF-8")
  })

  it("a proof of hostile bytes is refused with little work", () => {
    const word = (value: bigint) => Words.uint(value)
    const work = Work.of(() => {
      // Each of many parts claims the same long tail.
      for (const count of [16n, 17n, 2n ** 255n]) {
        const heads = Array.from({ length: 1000 }, () => word(0n)).join("")
        const proof = `0x${word(64n)}${word(64n)}${word(count)}${heads}${"11".repeat(1_000_000)}`
        expect(
          Result.isFailure(Proof.decode(Hex.unsafe(proof.slice(0, proof.length - (proof.length % 64) + 2))))
        ).toBe(true)
      }
      for (const filler of ["ff", "00", "20"])
        for (const words of [2, 3, 100, 800])
          expect(Result.isFailure(Proof.decode(Hex.unsafe(`0x${filler.repeat(32 * words)}`)))).toBe(true)
    })
    expect(work).toBeLessThan(2_000)
    forAll([hex(2000)], (bytes) => Result.isResult(Proof.normalise(bytes)))
  })

  it("a proof whose index is not a uint8 names a passkey that no wallet has", () => {
    const [one] = fc.sample(part, 1)
    if (one === undefined) throw new Error("no sample")
    for (const index of [-1, 256, 0.5, Number.NaN])
      expect(Proof.encode({ ecdsa: Hex.empty, passkeys: [{ ...one, index }] })).toBe(
        Proof.encode({ ecdsa: Hex.empty, passkeys: [{ ...one, index: 255 }] })
      )
  })
})

describe("A dummy", () => {
  const passkeys = Array.from({ length: 3 }, newPasskey).map(({ publicKey: { x, y } }) => ({
    x: Hex.unsafe32(x),
    y: Hex.unsafe32(y)
  }))
  const config = { custody: 4, threshold: 2, owners: [], passkeys } as const

  it("a dummy proof of owners only is a dummy of signatures", () => {
    for (const owners of [1, 3, 16])
      expect(Proof.dummy(config, { owners, passkeys: 0 })).toBe(Proof.dummyEcdsa(owners))
    expect(Proof.dummy({ ...config, passkeys: [] }, { owners: 0, passkeys: 2 })).toBe(Proof.dummyEcdsa(1))
  })

  it("a dummy proof has the parts of the real proof, at maximum length without zero bytes", () => {
    const { ecdsa, passkeys: found } = Result.getOrThrow(
      Proof.decode(Proof.dummy(config, { owners: 2, passkeys: 3 }))
    )
    expect(Proof.signatures(ecdsa)).toBe(2)
    expect(found.map(({ index }) => index)).toEqual([0, 1, 2])
    for (const { auth } of found) {
      expect(auth.clientDataJSON).toHaveLength(WebAuthn.maxClientData)
      expect(Hex.size(auth.authenticatorData)).toBe(WebAuthn.maxAuthenticatorData)
      const bytes = Hex.toBytes(WebAuthn.clientDataOf(auth))
      expect(ClientData.steps(bytes, auth.typeIndex, auth.challengeIndex)).toBe(WebAuthn.maxSteps)
      const all = Hex.concat(auth.r, auth.s, auth.authenticatorData, WebAuthn.clientDataOf(auth))
      expect(all.slice(2).match(/../g)).not.toContain("00")
      expect(() => JSON.parse(auth.clientDataJSON)).not.toThrow()
    }
  })

  it("a dummy proof with the op's challenge fails only the signature check, and keeps its length", () => {
    forAll(
      [bytes32, uint48, uint48, address, hex(70)],
      (userOpHash, validUntil, validAfter, bundler, tail) => {
        const conditions = { validUntil, validAfter, bundler }
        const proof = Proof.dummy(config, { owners: 1, passkeys: 2 })
        const signature = Conditions.encodeSignature(conditions, proof)
        const challenged = Proof.challenge(Hex.concat(signature, tail), userOpHash)
        expect(challenged.length).toBe(signature.length + tail.length - 2)
        expect(challenged.endsWith(tail.slice(2))).toBe(true)
        const bare = Hex.unsafe(challenged.slice(0, signature.length))
        const decoded = Result.getOrThrow(Conditions.decodeSignature(bare))
        expect(decoded.conditions).toEqual(conditions)
        for (const { auth } of Result.getOrThrow(Proof.decode(decoded.proof)).passkeys) {
          expect(WebAuthn.check(auth, Conditions.signingHash(userOpHash, conditions))).toEqual(Result.void)
          expect(WebAuthn.signedBy(auth, passkeys)).toBeNull()
        }
      },
      { numRuns: 20 }
    )
  })

  it("bytes other than a dummy proof get no challenge", () => {
    forAll([hex(600), bytes32], (bytes, hash) => Proof.challenge(bytes, hash) === bytes)
  })
})
