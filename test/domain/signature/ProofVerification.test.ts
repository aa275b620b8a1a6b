import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { SigningKey, Wallet } from "ethers"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Proof from "../../../src/domain/signature/Proof.js"
import * as ProofVerification from "../../../src/domain/signature/ProofVerification.js"
import * as WebAuthn from "../../../src/domain/signature/WebAuthn.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { type Answer, encoded, respond } from "../../support/passkeys/Authenticator.js"
import { ecdsa, highS, newPasskey, parityV, personal } from "../../support/suite/Keys.js"

const hash = Hex.unsafe32(`0x${"a1".repeat(32)}`)
const elsewhere = Hex.unsafe32(`0x${"b2".repeat(32)}`)
const wallets = Array.from(
  { length: 4 },
  (_, index) => new Wallet(new SigningKey(`0x${`${index + 1}`.repeat(64)}`))
)
const [a = wallets[0], b, c, stranger] = wallets
if (a === undefined || b === undefined || c === undefined || stranger === undefined) throw new Error("four")
const [p, q, thief] = [newPasskey(), newPasskey(), newPasskey()]
const keyOf = ({ publicKey }: typeof p) => ({ x: Hex.unsafe32(publicKey.x), y: Hex.unsafe32(publicKey.y) })
const configOf = (
  custody: WalletConfig.WalletConfig["custody"],
  signers: ReadonlyArray<Wallet>,
  passkeys: ReadonlyArray<typeof p>,
  threshold = 1
) =>
  Result.getOrThrow(
    WalletConfig.make({
      custody,
      owners: signers.map((each) => Address.unsafe(each.address)),
      passkeys: passkeys.map(keyOf),
      threshold
    })
  )
const multisig = configOf(3, [a, b, c], [], 2)
const union = configOf(4, [a, b], [p, q], 3)
const either = configOf(2, [a], [p, q])
const passkeys = configOf(5, [], [p, q])

const indexIn = (config: WalletConfig.WalletConfig, by: typeof p) =>
  config.passkeys.findIndex(({ x }) => x === keyOf(by).x)
const auth = (by: typeof p, answer: Answer = {}, over = hash) =>
  Result.getOrThrow(WebAuthn.read(encoded(respond(over, by, answer))))
const part = (config: WalletConfig.WalletConfig, by: typeof p, answer?: Answer, over?: Hex.Bytes32) => ({
  index: indexIn(config, by),
  auth: auth(by, answer, over)
})
const proof = (signatures: string, ...parts: ReadonlyArray<Proof.PasskeyPart>) =>
  Proof.encode({ ecdsa: Hex.unsafe(signatures), passkeys: parts })
const verify = (config: WalletConfig.WalletConfig, signed: Hex.Hex) =>
  ProofVerification.verify(config, hash, signed)
const refusal = (config: WalletConfig.WalletConfig, signed: Hex.Hex) =>
  Result.getOrThrow(Result.flip(verify(config, signed)))

describe("A wallet consents", () => {
  it.each([
    ["1 by its owner", configOf(1, [a], []), proof(ecdsa(hash, a))],
    ["1 by its owner's personal message", configOf(1, [a], []), proof(personal(hash, a))],
    ["1 with v 0 or 1", configOf(1, [a], []), proof(parityV(ecdsa(hash, a)))],
    ["2 by its owner", either, proof(ecdsa(hash, a))],
    ["2 by one of its passkeys", either, proof("0x", part(either, q))],
    ["2 by both", either, proof(ecdsa(hash, a), part(either, p))],
    ["3 by two in any order", multisig, proof(ecdsa(hash, c, a))],
    ["3 by all, one by a personal message", multisig, proof(ecdsa(hash, a, b) + personal(hash, c).slice(2))],
    ["4 by owners and a passkey", union, proof(ecdsa(hash, b, a), part(union, q))],
    ["4 by an owner and passkeys", union, proof(ecdsa(hash, b), part(union, q), part(union, p))],
    ["5 by a passkey", passkeys, proof("0x", part(passkeys, p))],
    ["5 by both of them", passkeys, proof("0x", part(passkeys, q), part(passkeys, p))]
  ])("of custody %s", (_, config, signed) => {
    expect(verify(config, signed)).toEqual(Result.void)
  })

  it.each([
    [
      "no part at all",
      passkeys,
      Hex.unsafe(`0x${"0".repeat(62)}40${"0".repeat(62)}60${"0".repeat(128)}`),
      0,
      1
    ],
    ["one of two signatures", multisig, proof(ecdsa(hash, b)), 1, 2],
    ["an owner and a passkey of three", union, proof(ecdsa(hash, b), part(union, q)), 2, 3],
    ["two owners of three", union, proof(ecdsa(hash, b, a)), 2, 3]
  ])("a wallet refuses a proof by %s", (_, config, signed, have, of) => {
    expect(refusal(config, signed)).toEqual({
      kind: "threshold",
      message: `threshold not met: have ${have} of ${of}`
    })
  })

  it("a wallet refuses a stranger's signature, however many others sign", () => {
    const { kind, message } = refusal(multisig, proof(ecdsa(hash, a, b, stranger)))
    expect(kind).toBe("invalid")
    expect(message).toMatch(
      new RegExp(
        `^signature 2 is by no owner of the wallet over ${hash}: ${stranger.address} would have signed it, or 0x`
      )
    )
    expect(refusal(passkeys, proof(ecdsa(hash, a), part(passkeys, p))).message).toContain(
      "signature 0 is by no owner"
    )
  })

  it("a wallet refuses a signature over another hash, with the expected hash", () => {
    expect(refusal(multisig, proof(ecdsa(elsewhere, a, b))).message).toMatch(
      new RegExp(`^signature 0 is by no owner of the wallet over ${hash}: `)
    )
    const { message } = refusal(passkeys, proof("0x", part(passkeys, p, {}, elsewhere)))
    expect(message).toMatch(/^passkey 0: clientDataJSON: expected the challenge /)
    expect(message).toContain(`which is base64url of the signing hash ${hash}`)
  })

  it("a wallet refuses a signer used twice, in any form", () => {
    const twice = (signed: string) => refusal(multisig, proof(signed)).message
    expect(twice(ecdsa(hash, a, a))).toBe(`signature 1 is by ${a.address}, as signature 0 is already`)
    expect(twice(ecdsa(hash, b, a) + personal(hash, b).slice(2))).toBe(
      `signature 2 is by ${b.address}, as signature 0 is already`
    )
    const index = indexIn(union, q)
    expect(refusal(union, proof(ecdsa(hash, a), part(union, q), part(union, q))).message).toBe(
      `passkey 1: its index is ${index}, as that of passkey 0 is already`
    )
  })

  it("a wallet refuses a foreign passkey, and its own under another index", () => {
    expect(refusal(passkeys, proof("0x", { index: 0, auth: auth(thief) })).message).toBe(
      "passkey 0: the signature is not by the wallet's passkey 0"
    )
    const wrong = 1 - indexIn(passkeys, p)
    expect(refusal(passkeys, proof("0x", { index: wrong, auth: auth(p) })).message).toBe(
      `passkey 0: the signature is not by the wallet's passkey ${wrong}`
    )
    expect(refusal(passkeys, proof("0x", { index: 2, auth: auth(p) })).message).toBe(
      "passkey 0: its index is 2, but the wallet has 2 passkeys"
    )
    expect(refusal(multisig, proof(ecdsa(hash, a, b), { index: 0, auth: auth(p) })).message).toBe(
      "passkey 0: its index is 0, but the wallet has 0 passkeys"
    )
  })

  it("a wallet's verification refuses the assertions that its contract refuses", () => {
    expect(refusal(passkeys, proof("0x", part(passkeys, p, { flags: 1 }))).message).toBe(
      "passkey 0: authenticatorData: the user was not verified (flag UV)"
    )
    expect(refusal(passkeys, proof("0x", part(passkeys, p, { type: "webauthn.create" }))).message).toContain(
      'passkey 0: clientDataJSON: expected type webauthn.get, but it is "webauthn.create"'
    )
  })

  it("a wallet refuses malformed proofs and signatures of the upper half", () => {
    expect(refusal(multisig, Hex.empty).message).toContain("but the proof has 0 bytes")
    expect(refusal(multisig, Hex.unsafe(highS(ecdsa(hash, a)))).message).toContain(
      "signature 0: s is in the upper half"
    )
    expect(refusal(union, proof(highS(ecdsa(hash, a)), part(union, p))).message).toContain(
      "s is in the upper half"
    )
  })

  it("a wallet refuses every proof under threshold zero, which no wallet has", () => {
    const none = Hex.unsafe(`0x${"0".repeat(62)}40${"0".repeat(62)}60${"0".repeat(128)}`)
    expect(refusal({ ...multisig, threshold: 0 }, none).kind).toBe("threshold")
  })
})

describe("A proof", () => {
  it("normalising a mixed proof changes only its signatures", () => {
    const mixed = proof(parityV(ecdsa(hash, a)), part(union, p))
    const normal = Result.getOrThrow(Proof.normalise(mixed))
    const read = Result.getOrThrow(Proof.decode(normal))
    expect(read.ecdsa).toBe(ecdsa(hash, a))
    expect(read.passkeys).toEqual(Result.getOrThrow(Proof.decode(mixed)).passkeys)
  })
})
