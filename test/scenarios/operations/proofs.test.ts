import { concat, id, Wallet } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, useStack } from "../../support/stack/Stack.js"
import { assertion, configOf, ecdsa, highS, indexIn, parityV, personal } from "../../support/suite/Keys.js"
import { mixedProof } from "../../support/suite/Layouts.js"

let journey: Journey.Journey
const stack = useStack({}, async (stack) => {
  journey = Journey.make(stack, "v0.7")
})

const own = keyOf(1)
const [alice, bob, stranger] = [new Wallet(id("alice")), new Wallet(id("bob")), new Wallet(id("stranger"))]
const [phone, lost] = [Authenticator.make(), Authenticator.make()]

/** A refusal before anything was sent. */
const refused = async (posted: Parameters<typeof stack.refused>[0]) => {
  const before = await stack.nonce()
  const { _tag, code, message } = await stack.refused(posted)
  expect(await stack.nonce()).toBe(before)
  return { _tag, code, message }
}

describe("a proof of a 2-of-3 wallet", () => {
  let op: Awaited<ReturnType<Journey.Journey["estimated"]>>
  beforeAll(async () => {
    const wallet = await journey.created({
      salt: "two of three",
      walletCustody: 3,
      signers: [alice.address, bob.address, own.address],
      threshold: "2"
    })
    op = await journey.estimated(journey.transfer(wallet, Journey.recipient()))
  })

  const both = () => `expected over signingHash ${op.signingHash} or userOpHash ${op.userOpHash}`
  it.each<[string, () => string, string, () => string]>([
    [
      "by one of its owners",
      () => ecdsa(op.signingHash, alice),
      "threshold_not_met",
      () => "threshold not met: have 1 of 2"
    ],
    [
      "twice by one owner, once over the EIP-191 form",
      () => concat([ecdsa(op.signingHash, alice), personal(op.signingHash, alice)]),
      "invalid_signature",
      () => `invalid signature: signature 1 is by ${alice.address}, as signature 0 is already; ${both()}`
    ],
    [
      "by somebody else beside an owner",
      () => ecdsa(op.signingHash, alice, stranger),
      "invalid_signature",
      () => `signature 1 is by no owner of the wallet over ${op.signingHash}: ${stranger.address}`
    ],
    [
      "of which one part is over another hash",
      () => concat([ecdsa(op.signingHash, alice), ecdsa(op.userOpHash, bob)]),
      "invalid_signature",
      () => "signature 1 is by no owner of the wallet"
    ],
    ["over another hash", () => ecdsa(id("another"), alice, bob), "invalid_signature", both],
    [
      "with s in the upper half",
      () => concat([ecdsa(op.signingHash, alice), highS(ecdsa(op.signingHash, bob))]),
      "invalid_signature",
      () => "signature 1: s is in the upper half: only the low form of a signature is accepted"
    ],
    ["of no bytes", () => "0x", "invalid_signature", () => "but the proof has 0 bytes"],
    [
      "with a passkey, of which it has none",
      () =>
        mixedProof(ecdsa(op.signingHash, alice), [assertion(op.signingHash, phone.passkey, { index: 0 })]),
      "invalid_signature",
      () => `passkey 0: its index is 0, but the wallet has 0 passkeys; ${both()}`
    ]
  ])("%s is refused with the reason", async (_, proof, code, message) => {
    const failure = await refused(journey.executeEncoded(op, proof()))
    expect(failure).toEqual({ _tag: "Unprocessable", code, message: expect.stringContaining(message()) })
  })

  it("over the bundler of another submitter is refused", async () => {
    const proof = ecdsa(op.signingHash, alice, bob)
    const failure = await refused(journey.executeEncoded(op, proof, { signer: Journey.second }))
    expect(failure.code).toBe("invalid_signature")
    expect(failure.message).not.toContain(op.signingHash)
  })

  it("of owners in any order, with v of 0 or 1 and in both forms, lands", async () => {
    const proof = concat([parityV(ecdsa(op.signingHash, own)), personal(op.signingHash, alice)])
    expect((await stack.ask(journey.executeEncoded(op, proof))).status).toBe(1)
  })
})

describe("an assertion for a wallet of passkeys", () => {
  let op: Awaited<ReturnType<Journey.Journey["hashed"]>>
  let wallet: string
  const passkeyPubKey = [phone.spki.toString("base64")]
  beforeAll(async () => {
    wallet = await journey.created({ salt: "passkeys", walletCustody: 5, passkeyPubKey })
    op = await journey.hashed(journey.transfer(wallet, Journey.recipient()))
  })

  const byNone = "signature: it is by none of the wallet's passkeys"
  it.each<[string, () => Authenticator.Assertion, string]>([
    [
      "of another challenge",
      () => phone.get(id("another")),
      "clientDataJSON: the challenge is not base64url of signingHash 0x"
    ],
    [
      "without verification of the user",
      () => phone.get(op.signingHash, { flags: 0x01 }),
      "authenticatorData: the user was not verified (flag UV)"
    ],
    ["by another key", () => lost.get(op.signingHash), byNone],
    [
      "whose data were exchanged",
      () => ({
        ...phone.get(op.signingHash),
        authenticatorData: lost.get(op.signingHash, { origin: "https://x.example" }).authenticatorData
      }),
      byNone
    ]
  ])("%s is refused with the reason", async (_, made, message) => {
    const failure = await refused(journey.executePasskey(op, made()))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "invalid_signature" })
    expect(failure.message).toContain(`invalid signature: ${message}`)
  })

  it.each([
    ["signature", Buffer.alloc(64).toString("base64"), "r and s must be between 1 and the order of P-256"],
    ["authenticatorData", "***", expect.stringContaining("base64")],
    ["clientDataJSON", Buffer.from("challenge").toString("base64"), expect.stringContaining("JSON object")]
  ])("with a bad %s is a 400 that names the field", async (field, value, message) => {
    const posted = journey.executePasskey(op, { ...phone.get(op.signingHash), [field]: value })
    expect(await stack.refused(posted)).toMatchObject({
      _tag: "InvalidRequest",
      code: "invalid_request",
      details: [{ path: `operations[0].validationData.${field}`, message }]
    })
  })

  it("over another op is a 400 that names the right hash", async () => {
    const other = { ...op, userOpHash: id("another") }
    expect(await stack.refused(journey.executePasskey(other, phone.get(op.signingHash)))).toMatchObject({
      code: "hash_mismatch",
      message: "userOpHash mismatch",
      details: [{ message: expect.stringContaining(op.userOpHash) }]
    })
  })

  it("lands over either hash, and posted again gives the same outcome", async () => {
    for (const which of ["userOpHash", "signingHash"] as const) {
      const next = await journey.hashed(journey.transfer(wallet, Journey.recipient()))
      const post = () => stack.ask(journey.executePasskey(next, phone.get(next[which])))
      const { status, txHash } = await post()
      expect(status).toBe(1)
      expect(await post()).toMatchObject({ status, txHash })
    }
  })

  it("is too little where the threshold is higher, and enough where it is one", async () => {
    const signers = [{ clientId: "dev", versionId: "1" }]
    const shared = { walletCustody: 4 as const, signers, passkeyPubKey }
    const both = await journey.created({ ...shared, salt: "both", threshold: "2" })
    const any = await journey.created({ ...shared, salt: "any", threshold: "1" })
    const one = await journey.hashed(journey.transfer(both, Journey.recipient()))
    const failure = await stack.refused(journey.executePasskey(one, phone.get(one.signingHash)))
    expect(failure).toMatchObject({ code: "threshold_not_met", message: "threshold not met: have 1 of 2" })
    const to = Journey.recipient()
    const other = await journey.hashed(journey.transfer(any, to))
    const answer = await stack.ask(journey.executePasskey(other, phone.get(other.signingHash)))
    await journey.transferred(answer, any, to)
    const index = indexIn(configOf(4, [own], [phone.passkey], 2), phone.passkey)
    const mixed = await journey.estimated(journey.transfer(both, Journey.recipient()))
    const parts = [assertion(mixed.signingHash, phone.passkey, { index })]
    const proof = mixedProof(ecdsa(mixed.signingHash, own), parts)
    expect((await stack.ask(journey.executeEncoded(mixed, proof))).status).toBe(1)
  })
})
