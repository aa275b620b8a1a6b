import { concat, getBytes, hashMessage, id, recoverAddress, Wallet } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { assertion, configOf, ecdsa, highS, indexIn, parityV, personal } from "../../support/suite/Keys.js"
import { mixedProof } from "../../support/suite/Layouts.js"

let stack: Stack
let journey: Journey.Journey
beforeAll(async () => {
  stack = await startStack()
  journey = Journey.make(stack, "v0.7")
})
afterAll(() => stack.stop())

type Op = Awaited<ReturnType<Journey.Journey["estimated"]>>

const own = keyOf(1)
const alice = new Wallet(id("alice"))
const stranger = new Wallet(id("stranger"))
const phone = Authenticator.make()
const lost = Authenticator.make()

/** A refusal before anything was sent. */
const refused = async (posted: Parameters<Stack["refused"]>[0]) => {
  const sent = () => stack.provider.getTransactionCount(own.address)
  const before = await sent()
  const { _tag, code, message } = await stack.refused(posted)
  expect(await sent()).toBe(before)
  return { _tag, code, message }
}

describe("a proof of a 2-of-3 wallet", () => {
  const bob = new Wallet(id("bob"))
  let op: Op
  beforeAll(async () => {
    const wallet = await journey.created({
      salt: "two of three",
      walletCustody: 3,
      signers: [alice.address, bob.address, own.address],
      threshold: "2"
    })
    op = await journey.estimated(journey.transfer(wallet, Journey.recipient()))
  })

  const expected = () => `expected over signingHash ${op.signingHash} or userOpHash ${op.userOpHash}`
  const nobody = (n: number, hash: string, by: string, personally: string) =>
    `invalid signature: signature ${n} is by no owner of the wallet over ${hash}: ${by} would have signed it, or ${personally} its EIP-191 form; ${expected()}`

  it.each<[string, () => string, string, () => string | RegExp]>([
    [
      "by one of its owners",
      () => ecdsa(op.signingHash, alice),
      "threshold_not_met",
      () => "threshold not met: have 1 of 2"
    ],
    [
      "by one of its owners over userOpHash",
      () => ecdsa(op.userOpHash, bob),
      "threshold_not_met",
      () => "threshold not met: have 1 of 2"
    ],
    [
      "twice by one owner",
      () => ecdsa(op.signingHash, alice, alice),
      "invalid_signature",
      () => `invalid signature: signature 1 is by ${alice.address}, as signature 0 is already; ${expected()}`
    ],
    [
      "twice by one owner, once over the EIP-191 form",
      () => concat([ecdsa(op.signingHash, alice), personal(op.signingHash, alice)]),
      "invalid_signature",
      () => `invalid signature: signature 1 is by ${alice.address}, as signature 0 is already; ${expected()}`
    ],
    [
      "by somebody else beside an owner",
      () => ecdsa(op.signingHash, alice, stranger),
      "invalid_signature",
      () => new RegExp(`signature 1 is by no owner of the wallet over ${op.signingHash}: ${stranger.address}`)
    ],
    [
      "of three of whom one is nobody",
      () => ecdsa(op.signingHash, alice, bob, stranger),
      "invalid_signature",
      () => /signature 2 is by no owner of the wallet/
    ],
    [
      "of which one part is over another hash",
      () => concat([ecdsa(op.signingHash, alice), ecdsa(op.userOpHash, bob)]),
      "invalid_signature",
      () => /signature 1 is by no owner of the wallet/
    ],
    [
      "over another hash",
      () => ecdsa(id("another"), alice, bob),
      "invalid_signature",
      () => new RegExp(`${expected()}$`)
    ],
    [
      "with s in the upper half",
      () => concat([ecdsa(op.signingHash, alice), highS(ecdsa(op.signingHash, bob))]),
      "invalid_signature",
      () =>
        "invalid signature: signature 1: s is in the upper half: only the low form of a signature is accepted"
    ],
    [
      "of 63 bytes",
      () => ecdsa(op.signingHash, alice).slice(0, -4),
      "invalid_signature",
      () => /^invalid signature: /
    ],
    ["of no bytes", () => "0x", "invalid_signature", () => /but the proof has 0 bytes$/],
    [
      "of more owners than a proof may have",
      () => ecdsa(op.signingHash, ...Array.from({ length: 17 }, () => alice)),
      "invalid_signature",
      () => /but the proof has 1105 bytes$/
    ],
    [
      "with a passkey, of which it has none",
      () =>
        mixedProof(ecdsa(op.signingHash, alice), [assertion(op.signingHash, phone.passkey, { index: 0 })]),
      "invalid_signature",
      () => `invalid signature: passkey 0: its index is 0, but the wallet has 0 passkeys; ${expected()}`
    ]
  ])("%s is refused with the reason", async (_, proof, code, message) => {
    const failure = await refused(journey.executeEncoded(op, proof()))
    const text = message()
    expect(failure).toMatchObject({ _tag: "Unprocessable", code })
    if (typeof text === "string") expect(failure.message).toBe(text)
    else expect(failure.message).toMatch(text)
  })

  it("over the bundler of another submitter is refused", async () => {
    const failure = await refused(
      journey.executeEncoded(op, ecdsa(op.signingHash, alice, bob), { signer: Journey.second })
    )
    expect(failure.code).toBe("invalid_signature")
    expect(failure.message).not.toContain(op.signingHash)
  })

  it("tells who would have signed", async () => {
    const failure = await refused(journey.executeEncoded(op, ecdsa(op.signingHash, stranger)))
    const personally = hashMessage(getBytes(op.signingHash))
    const other = recoverAddress(personally, ecdsa(op.signingHash, stranger))
    expect(failure.message).toBe(nobody(0, op.signingHash, stranger.address, other))
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

  const base64 = (text: string) => Buffer.from(text).toString("base64")
  const jsonOf = ({ clientDataJSON }: Authenticator.Assertion): string =>
    Buffer.from(clientDataJSON, "base64url").toString()

  it.each<[string, () => Authenticator.Assertion, string, string | RegExp]>([
    [
      "of another challenge",
      () => phone.get(id("another")),
      "invalid_signature",
      /^invalid signature: clientDataJSON: the challenge is not base64url of signingHash 0x[0-9a-f]{64} or userOpHash 0x[0-9a-f]{64}$/
    ],
    [
      "of a registration",
      () => phone.get(op.signingHash, { type: "webauthn.create" }),
      "invalid_signature",
      'invalid signature: clientDataJSON: expected type webauthn.get, but it is "webauthn.create"'
    ],
    [
      "without the user",
      () => phone.get(op.signingHash, { flags: 0x04 }),
      "invalid_signature",
      "invalid signature: authenticatorData: the user was not present (flag UP)"
    ],
    [
      "without verification of the user",
      () => phone.get(op.signingHash, { flags: 0x01 }),
      "invalid_signature",
      "invalid signature: authenticatorData: the user was not verified (flag UV)"
    ],
    [
      "by a key that is backed up and may not be",
      () => phone.get(op.signingHash, { flags: 0x15 }),
      "invalid_signature",
      "invalid signature: authenticatorData: the key says that it is backed up and may not be (flags BS and BE)"
    ],
    [
      "by another key",
      () => lost.get(op.signingHash),
      "invalid_signature",
      "invalid signature: signature: it is by none of the wallet's passkeys"
    ],
    [
      "whose data were exchanged",
      () => ({
        ...phone.get(op.signingHash),
        authenticatorData: lost.get(op.signingHash, { origin: "https://x.example" }).authenticatorData
      }),
      "invalid_signature",
      "invalid signature: signature: it is by none of the wallet's passkeys"
    ]
  ])("%s is refused with the reason", async (_, made, code, message) => {
    const failure = await refused(journey.executePasskey(op, made()))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code })
    if (typeof message === "string") expect(failure.message).toBe(message)
    else expect(failure.message).toMatch(message)
  })

  it.each<[string, (good: Authenticator.Assertion) => object, string, string | RegExp]>([
    ["no signature", () => ({ signature: "" }), "signature", /^expected/],
    [
      "half a signature",
      () => ({ signature: base64("half") }),
      "signature",
      "expected r || s (64 bytes) or the DER of r and s"
    ],
    [
      "a signature of zeros",
      () => ({ signature: Buffer.alloc(64).toString("base64") }),
      "signature",
      "r and s must be between 1 and the order of P-256"
    ],
    ["what is no base64", () => ({ authenticatorData: "***" }), "authenticatorData", /base64/],
    [
      "too long authenticator data",
      () => ({ authenticatorData: Buffer.alloc(161).toString("base64") }),
      "authenticatorData",
      "expected at most 160 bytes"
    ],
    [
      "a too long text",
      (good) => ({ clientDataJSON: base64(jsonOf(good).padEnd(513)) }),
      "clientDataJSON",
      "expected at most 512 bytes"
    ],
    [
      "a text that is no JSON",
      () => ({ clientDataJSON: base64("challenge") }),
      "clientDataJSON",
      "expected a JSON object with type and challenge"
    ],
    [
      "a text that is no UTF-8",
      () => ({ clientDataJSON: Buffer.of(0xff, 0xfe).toString("base64") }),
      "clientDataJSON",
      "expected UTF-8"
    ],
    [
      "a challenge that is escaped",
      (good) => ({ clientDataJSON: base64(jsonOf(good).replace('"webauthn.get"', '"webauthn\\u002eget"')) }),
      "clientDataJSON",
      /as browsers write them/
    ]
  ])("with %s is a 400 that names the field", async (_, change, field, message) => {
    const good = phone.get(op.signingHash)
    const failure = await stack.refused(journey.executePasskey(op, { ...good, ...change(good) }))
    expect(failure).toMatchObject({ _tag: "InvalidRequest", code: "invalid_request" })
    const [detail] = failure.details
    expect(detail?.path).toBe(`operations[0].validationData.${field}`)
    if (typeof message === "string") expect(detail?.message).toBe(message)
    else expect(detail?.message).toMatch(message)
  })

  it("over another op is a 400 that names the right hash", async () => {
    const failure = await stack.refused(
      journey.executePasskey({ ...op, userOpHash: id("another") }, phone.get(op.signingHash))
    )
    expect(failure).toMatchObject({ code: "hash_mismatch", message: "userOpHash mismatch" })
    expect(failure.details[0]?.message).toContain(op.userOpHash)
  })

  it("over userOpHash, bound to nothing, lands", async () => {
    const next = await journey.hashed(journey.transfer(wallet, Journey.recipient()))
    expect((await stack.ask(journey.executePasskey(next, phone.get(next.userOpHash)))).status).toBe(1)
  })

  it("posted again gives the same outcome, whoever has signed", async () => {
    const next = await journey.hashed(journey.transfer(wallet, Journey.recipient()))
    const first = await stack.ask(journey.executePasskey(next, phone.get(next.signingHash)))
    const again = await stack.ask(journey.executePasskey(next, phone.get(next.signingHash)))
    expect(again).toMatchObject({ status: 1, txHash: first.txHash })
  })

  it("is too little where the threshold is higher, and enough where it is one", async () => {
    const signers = [{ clientId: "dev", versionId: "1" }]
    const both = await journey.created({
      salt: "both",
      walletCustody: 4,
      signers,
      passkeyPubKey,
      threshold: "2"
    })
    const one = await journey.hashed(journey.transfer(both, Journey.recipient()))
    const failure = await stack.refused(journey.executePasskey(one, phone.get(one.signingHash)))
    expect(failure).toMatchObject({ code: "threshold_not_met", message: "threshold not met: have 1 of 2" })
    const any = await journey.created({
      salt: "any",
      walletCustody: 4,
      signers,
      passkeyPubKey,
      threshold: "1"
    })
    const to = Journey.recipient()
    const other = await journey.hashed(journey.transfer(any, to))
    await journey.transferred(
      await stack.ask(journey.executePasskey(other, phone.get(other.signingHash))),
      any,
      to
    )
    const config = configOf(4, [own], [phone.passkey], 2)
    const mixed = await journey.estimated(journey.transfer(both, Journey.recipient()))
    const parts = [assertion(mixed.signingHash, phone.passkey, { index: indexIn(config, phone.passkey) })]
    const proof = mixedProof(ecdsa(mixed.signingHash, own), parts)
    expect((await stack.ask(journey.executeEncoded(mixed, proof))).status).toBe(1)
  })
})
