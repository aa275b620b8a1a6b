import { describe, expect, it } from "@effect/vitest"
import { verifyAuthenticationResponse } from "@simplewebauthn/server"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as P256 from "../../../src/domain/crypto/P256.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as WebAuthn from "../../../src/domain/signature/WebAuthn.js"
import { type Answer, encoded, origin, respond, rpId } from "../../support/passkeys/Authenticator.js"
import { cose, coseMembers, spellings } from "../../support/passkeys/Encodings.js"
import { newPasskey } from "../../support/suite/Keys.js"
import { bytes32, forAll } from "../generators.js"

const [passkey, other] = [newPasskey(), newPasskey()]
const keyOf = ({ publicKey }: typeof passkey) => ({
  x: Hex.unsafe32(publicKey.x),
  y: Hex.unsafe32(publicKey.y)
})
const key = keyOf(passkey)
const hash = Hex.unsafe32(`0x${"a1".repeat(32)}`)
const readOf = (answer: Answer = {}, over: string = hash) =>
  WebAuthn.read(encoded(respond(over, passkey, answer)))
const authOf = (answer: Answer = {}, over: string = hash) => Result.getOrThrow(readOf(answer, over))
const why = (auth: WebAuthn.Auth) => Result.merge(WebAuthn.check(auth, hash))
const problem = (answer: Answer) => Result.getOrThrow(Result.flip(readOf(answer)))
const json = (members: string) => `{${members}}`
const challenge = Buffer.from(hash.slice(2), "hex").toString("base64url")

/** Verdict of another implementation on the same response. */
const secondOpinion = async (answer: Answer, over: string = hash): Promise<boolean> => {
  const { authenticatorData, clientDataJSON, signature } = encoded(respond(over, passkey, answer))
  try {
    const { verified } = await verifyAuthenticationResponse({
      response: {
        id: "AQID",
        rawId: "AQID",
        type: "public-key",
        clientExtensionResults: {},
        response: { authenticatorData, clientDataJSON, signature }
      },
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      credential: { id: "AQID", publicKey: new Uint8Array(cose(coseMembers(passkey))), counter: 0 }
    })
    return verified
  } catch {
    return false
  }
}

describe("An assertion", () => {
  it("an assertion is read from a browser's base64 or base64url, valid only for its hash and key", () => {
    forAll(
      [bytes32, bytes32, fc.nat(3)],
      (over, another, spelling) => {
        const response = respond(over, passkey)
        const auth = Result.getOrThrow(
          WebAuthn.read({
            signature: spellings(response.signature)[spelling] ?? "",
            authenticatorData: spellings(response.authenticatorData)[spelling] ?? "",
            clientDataJSON: spellings(response.clientDataJSON)[spelling] ?? ""
          })
        )
        expect(BigInt(auth.s)).toBeLessThanOrEqual(P256.largestS)
        expect(WebAuthn.check(auth, over)).toEqual(Result.void)
        expect(WebAuthn.signedBy(auth, [keyOf(other), key])).toBe(1)
        expect(WebAuthn.signedBy(auth, [keyOf(other)])).toBeNull()
        expect(WebAuthn.signedBy(auth, [])).toBeNull()
        if (over !== another) expect(Result.isFailure(WebAuthn.check(auth, another))).toBe(true)
      },
      { numRuns: 25 }
    )
  })

  it("an assertion is the same from DER and from r || s, for both halves of s", () => {
    const response = encoded(respond(hash, passkey))
    const auth = Result.getOrThrow(WebAuthn.read(response))
    const raw = (s: bigint) =>
      Buffer.from(auth.r.slice(2) + s.toString(16).padStart(64, "0"), "hex").toString("base64")
    for (const s of [BigInt(auth.s), P256.order - BigInt(auth.s)])
      expect(WebAuthn.read({ ...response, signature: raw(s) })).toEqual(Result.succeed(auth))
  })

  const members = `"type":"webauthn.get","challenge":"${challenge}","origin":"${origin}"`
  it.each<readonly [string, Answer]>([
    ["of members in another order", { json: json(members.split(",").toReversed().join(",")) }],
    ["with further members", { more: ',"other_keys_can_be_added_here":"see https://goo.gl/yabPex"' }],
    ["with a non-ASCII member ahead of the two", { json: json(`"näme":"鍵",${members}`) }],
    ["of a key that may be backed up", { flags: 0x0d }],
    ["of a key that is backed up", { flags: 0x1d }],
    ["with the like nested", { json: json(`"x":{"type":"webauthn.create","challenge":"AA"},${members}`) }]
  ])("%s is good, for another implementation as well", async (_, answer) => {
    const auth = authOf(answer)
    expect(WebAuthn.check(auth, hash)).toEqual(Result.void)
    expect(WebAuthn.signedBy(auth, [key])).toBe(0)
    const bytes = Buffer.from(auth.clientDataJSON)
    expect(bytes.subarray(Number(auth.typeIndex)).toString()).toMatch(/^"type":"webauthn.get"/)
    expect(bytes.subarray(Number(auth.challengeIndex)).toString()).toMatch(`"challenge":"${challenge}"`)
    expect(await secondOpinion(answer)).toBe(true)
  })

  it("up to the longest of both parts is good, and one byte more is refused", () => {
    const filler = (length: number) => ({ more: `,"x":"${"x".repeat(length)}"` })
    const used = Buffer.byteLength(authOf(filler(0)).clientDataJSON)
    const good = authOf()
    const tooLong = "expected at most 512 bytes"
    expect(why(authOf(filler(WebAuthn.maxClientData - used)))).toBeUndefined()
    const over = filler(WebAuthn.maxClientData - used + 1)
    expect(problem(over)).toEqual({ field: "clientDataJSON", message: tooLong })
    for (const clientDataJSON of [respond(hash, passkey, over).clientDataJSON.toString(), "é".repeat(257)])
      expect(why({ ...good, clientDataJSON })).toBe(`clientDataJSON: ${tooLong}`)

    expect(why(authOf({ extensions: Buffer.alloc(123) }))).toBeUndefined()
    expect(problem({ extensions: Buffer.alloc(124) })).toEqual({
      field: "authenticatorData",
      message: "expected at most 160 bytes"
    })
    for (const count of [36, 161])
      expect(why({ ...good, authenticatorData: Hex.unsafe(`0x${"05".repeat(count)}`) })).toBe(
        `authenticatorData: expected 37 to 160 bytes, but there are ${count}`
      )
  })

  it("an assertion costs at most its gas estimate to read, unless both members come first", () => {
    const both = `"challenge":"${challenge}","type":"webauthn.get"`
    const reading = "expected type and challenge first, as browsers write them, or at most 64"
    const good = (members: string) => expect(why(authOf({ json: json(members) }))).toBeUndefined()
    const dear = (members: string, steps: number) => {
      expect(why(authOf({ json: json(members) }))).toContain(reading)
      expect(why(authOf({ json: json(members) }))).toMatch(new RegExp(`got ${steps}$`))
    }
    // The brace, a name with its value, a colon, a comma, and the name of the later one.
    const own = 1 + 3 * 3 + 2
    const room = WebAuthn.maxSteps - own
    good(`${" ".repeat(room)}${both}`)
    dear(`${" ".repeat(room + 1)}${both}`, 65)
    // A name, its colon and its comma.
    const member = 3 + 2
    good(`"x":${"[".repeat(23)} ${"]".repeat(23)},${both}`)
    dear(`"x":${"[".repeat(24)}${"]".repeat(24)},${both}`, own + member + 48)
    dear(`"x":[${'"",'.repeat(30)}""],${both}`, own + member + 2 + 30 * 4 + 3)
    dear(`"x":"${'\\"'.repeat(60)}",${both}`, own + member + 3 + 120)
    good(`"x":"${"x".repeat(300)}",${both}`)
    good(`"type":"webauthn.get","challenge":"${challenge}","x":[${"[],".repeat(80)}[]]`)
    expect(why(authOf({ json: json(`${both},"x":[${"[],".repeat(80)}[]]`) }))).toBeUndefined()
  })

  const spelled =
    'expected "type":"..." and "challenge":"..." as browsers write them, without white space or escapes'
  const noObject = "expected a JSON object with type and challenge"

  it.each<readonly [string, Answer, string]>([
    [
      "made at registration",
      { type: "webauthn.create" },
      'clientDataJSON: expected type webauthn.get, but it is "webauthn.create"'
    ],
    ["without the user", { flags: 4 }, "authenticatorData: the user was not present (flag UP)"],
    [
      "of a user who was not verified",
      { flags: 1 },
      "authenticatorData: the user was not verified (flag UV)"
    ],
    [
      "of a key that is backed up and may not be",
      { flags: 0x15 },
      "authenticatorData: the key says that it is backed up and may not be (flags BS and BE)"
    ]
  ])("%s is refused with its own reason, by another implementation as well", async (_, answer, message) => {
    expect(why(authOf(answer))).toBe(message)
    expect(await secondOpinion(answer)).toBe(false)
  })

  it("an assertion over another hash is refused with the actual and the expected challenge", async () => {
    const auth = authOf({}, `0x${"b2".repeat(32)}`)
    const found = Buffer.from("b2".repeat(32), "hex").toString("base64url")
    expect(why(auth)).toBe(
      `clientDataJSON: expected the challenge ${challenge}, which is base64url of the signing hash ${hash}, but it is "${found}"`
    )
    expect(await secondOpinion({}, `0x${"b2".repeat(32)}`)).toBe(false)
  })

  it("an assertion of an endless challenge or type is refused with a short message", () => {
    const long = "x".repeat(350)
    for (const [type, given] of [
      [long, challenge],
      ["webauthn.get", long]
    ]) {
      const message = String(why(authOf({ json: json(`"type":"${type}","challenge":"${given}"`) })))
      expect(message).toContain(`"${"x".repeat(100)}..."`)
      expect(message.length).toBeLessThan(400)
    }
  })

  it.each<readonly [string, Answer, string]>([
    ["is no JSON", { json: "type" }, noObject],
    ["is a list", { json: "[]" }, noObject],
    ["is null", { json: "null" }, noObject],
    ["has no challenge", { json: '{"type":"webauthn.get"}' }, noObject],
    ["has a challenge that is not a string", { json: '{"type":"webauthn.get","challenge":1}' }, noObject],
    ["has them only in a nested object", { json: `{"x":{${members}}}` }, noObject],
    ["has a byte order mark", { json: `\ufeff{${members}}` }, noObject],
    ["has white space", { json: json(members.replaceAll(":", ": ")) }, spelled],
    ["has escapes", { json: json(members.replace("webauthn.get", "webauthn\\u002eget")) }, spelled],
    ["is no UTF-8", { json: Buffer.from(`{${members},"x":"\xff"`, "latin1") }, "expected UTF-8"]
  ])("an assertion whose clientDataJSON %s is refused", (_, answer, message) => {
    expect(problem(answer)).toEqual({ field: "clientDataJSON", message })
  })

  const ranges = "r and s must be between 1 and the order of P-256"
  it.each([
    ["signature", "!", "expected base64 or base64url, without white space"],
    ["signature", "", "expected r || s (64 bytes) or the DER of r and s"],
    ["signature", "AQID", "expected r || s (64 bytes) or the DER of r and s"],
    ["signature", Buffer.alloc(64).toString("base64"), ranges],
    ["signature", Buffer.alloc(64, 255).toString("base64"), ranges],
    ["signature", Buffer.alloc(73).toString("base64"), "expected at most 72 bytes"],
    ["signature", "A".repeat(1_000_000), "expected at most 72 bytes"],
    ["authenticatorData", "a b", "expected base64 or base64url, without white space"],
    ["authenticatorData", "A".repeat(1_000_000), "expected at most 160 bytes"],
    ["clientDataJSON", "a b", "expected base64 or base64url, without white space"],
    ["clientDataJSON", "A".repeat(1_000_000), "expected at most 512 bytes"]
  ] as const)("an assertion whose %s is %.8s is refused", (field, text, message) => {
    const wrong = WebAuthn.read({ ...encoded(respond(hash, passkey)), [field]: text })
    expect(wrong).toEqual(Result.fail({ field, message }))
  })

  it("an assertion with a high s, values out of range or wrong indexes is refused", () => {
    const auth = authOf()
    const high = Hex.unsafe32(`0x${(P256.order - BigInt(auth.s)).toString(16).padStart(64, "0")}`)
    expect(why({ ...auth, s: high })).toBe("signature: s is in the upper half")
    const none = Hex.unsafe32(`0x${"00".repeat(32)}`)
    expect(why({ ...auth, r: none })).toBe(`signature: ${ranges}`)
    const elsewhere = `clientDataJSON: ${spelled}, at typeIndex and challengeIndex`
    for (const index of [0n, auth.typeIndex + 1n, 1024n, 2n ** 256n - 1n]) {
      expect(why({ ...auth, typeIndex: index })).toBe(elsewhere)
      expect(why({ ...auth, challengeIndex: index })).toBe(elsewhere)
    }
    // The very bytes, but of an object inside: the object's own members have to say so.
    const inner = `{"type":"webauthn.get","challenge":"${challenge}"}`
    const nested = `{"type":"webauthn.create","challenge":"AA","x":${inner}}`
    const within = {
      typeIndex: BigInt(nested.indexOf(inner) + 1),
      challengeIndex: BigInt(nested.lastIndexOf('"challenge"'))
    }
    expect(why({ ...auth, ...within, clientDataJSON: nested })).toContain("expected type webauthn.get")
  })

  it("an assertion with changed bytes is not by the key", () => {
    const response = respond(hash, passkey)
    const auth = Result.getOrThrow(WebAuthn.read(encoded(response)))
    forAll(
      [fc.nat(36), fc.integer({ min: 1, max: 255 })],
      (at, by) => {
        const bytes = Buffer.from(response.authenticatorData)
        bytes[at] = (bytes[at] ?? 0) ^ by
        const changed = { ...auth, authenticatorData: Hex.fromBytes(bytes) }
        expect(WebAuthn.signedBy(changed, [key])).toBeNull()
      },
      { numRuns: 20 }
    )
    expect(WebAuthn.signedBy({ ...auth, clientDataJSON: `${auth.clientDataJSON} ` }, [key])).toBeNull()
  })

  it("judging an assertion of any strings never throws", () => {
    const text = fc.oneof(
      fc.string(),
      fc.base64String(),
      fc.json().map((it) => Buffer.from(it).toString("base64"))
    )
    forAll(
      [text, text, text],
      (signature, authenticatorData, clientDataJSON) => {
        const read = WebAuthn.read({ signature, authenticatorData, clientDataJSON })
        if (Result.isFailure(read)) expect(read.failure.message).toMatch(/^expected|^r and s/)
      },
      { numRuns: 500 }
    )
    forAll(
      [fc.json(), bytes32, fc.bigUintN(256)],
      (clientDataJSON, r, index) => {
        const auth = { ...authOf(), clientDataJSON, r, challengeIndex: index }
        expect(Result.isFailure(WebAuthn.check(auth, hash))).toBe(true)
        expect(WebAuthn.signedBy(auth, [key])).toBeNull()
      },
      { numRuns: 30 }
    )
  })

  it("an assertion of the WebAuthn test vectors is by its key, with an unverified user", () => {
    // W3C Web Authentication Level 3, section 16, "ES256 Credential with No Attestation" (W3C Document License).
    const base64 = (digits: string) => Buffer.from(digits, "hex").toString("base64")
    const auth = Result.getOrThrow(
      WebAuthn.read({
        signature: base64(
          "3046022100f50a4e2e4409249c4a853ba361282f09841df4dd4547a13a87780218deffcd380221008480ac0f0b93538174f575bf11a1dd5d78c6e486013f937295ea13653e331e87"
        ),
        authenticatorData: base64(
          "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b51900000000"
        ),
        clientDataJSON: base64(
          "7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a224f63446e55685158756c5455506f334a5558543049393770767a7a59425039745a63685879617630314167222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a66616c73657d"
        )
      })
    )
    const published = {
      x: Hex.unsafe32("0xafefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61"),
      y: Hex.unsafe32("0x930a56b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220")
    }
    expect(WebAuthn.signedBy(auth, [key, published])).toBe(1)
    const signed = Hex.unsafe32("0x39c0e7521417ba54d43e8dc95174f423dee9bf3cd804ff6d65c857c9abf4d408")
    expect(Result.merge(WebAuthn.check(auth, signed))).toBe(
      "authenticatorData: the user was not verified (flag UV)"
    )
  })
})
