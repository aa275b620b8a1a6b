import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as HashMap from "effect/HashMap"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { getBytes, hashMessage, keccak256, SigningKey, verifyMessage } from "ethers"
import { type Signer, SignerError, Signers } from "../../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../../src/application/ports/Tenants.js"
import type { Caller } from "../../../../src/application/request/Caller.js"
import * as SignMessages from "../../../../src/application/usecases/signing/SignMessages.js"
import * as Secp256k1 from "../../../../src/domain/crypto/Secp256k1.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"

const key = new SigningKey(`0x${"a1".repeat(32)}`)
const publicKey = key.publicKey.slice(2)
const address = Secp256k1.addressOf(publicKey)
const signer = { clientId: "client", versionId: "1" }
const caller: Caller = {
  requestId: "request-1",
  principal: {
    accountId: "acme" as AccountId,
    name: "acme",
    tier: "pro",
    scopes: new Set(["sign"]),
    paused: false
  }
}

const good: Signer["sign"] = (digest) => Effect.sync(() => Hex.unsafe(key.sign(digest).serialized))
const down = new SignerError({ reason: "unavailable", message: "the key provider did not answer" })

interface Line {
  readonly message: string
  readonly [name: string]: unknown
}

/** The use case over one key, with everything that it logs. */
const run = (body: object, sign: Signer["sign"] = good) =>
  Effect.gen(function* () {
    const lines: Array<Line> = []
    const request = Schema.decodeUnknownSync(SignMessages.Request, { onExcessProperty: "error" })({
      signer,
      ...body
    })
    const capture = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ annotations, message }) => {
        lines.push({ ...Object.fromEntries(HashMap.toEntries(annotations)), message: String(message) })
      })
    )
    const signers = Layer.succeed(Signers, {
      resolve: () => Effect.succeed({ address, publicKey, type: "KMS", sign })
    })
    const outcome = yield* Effect.either(SignMessages.run(caller, request)).pipe(
      Effect.provide([capture, signers])
    )
    return { lines, outcome }
  })

const answer = (body: object, sign?: Signer["sign"]) =>
  Effect.map(run(body, sign), ({ lines, outcome }) => {
    if (outcome._tag === "Left") throw new Error(outcome.left.code)
    const [element] = Schema.encodeSync(SignMessages.Response)(outcome.right)
    if (element === undefined || outcome.right.length !== 1) throw new Error("expected one element")
    return { ...element, lines }
  })

describe("messages", () => {
  it.effect("are signed so that anybody recovers the signer, in every format", () =>
    Effect.gen(function* () {
      for (const format of ["rsv", "hex", "compact", undefined] as const) {
        const {
          address: by,
          errors,
          publicKey: point,
          signatures
        } = yield* answer({
          messages: ["hello", "world"],
          ...(format !== undefined && { format })
        })
        expect([by, point, errors]).toEqual([address, publicKey, null])
        for (const [index, message] of ["hello", "world"].entries())
          expect(verifyMessage(message, signatures[index] as string)).toBe(address)
      }
      const { signatures } = yield* answer({ messages: ["hello"], format: "der" })
      expect(signatures[0]).toMatch(/^0x30[0-9a-f]+$/)
    })
  )

  it.effect("that are hashed already are signed as they are; one that is not 32 bytes fails alone", () =>
    Effect.gen(function* () {
      const digest = keccak256("0x01")
      const { errors, lines, signatures } = yield* answer({
        messages: [
          digest,
          "hello",
          digest.slice(0, 64),
          `${digest}00`,
          digest.toUpperCase().replace("0X", "0x")
        ],
        hashed: true,
        format: "hex"
      })
      const wrong = "expected 32 bytes: 0x and 64 hex digits"
      expect(signatures).toEqual([key.sign(digest).serialized, null, null, null, key.sign(digest).serialized])
      expect(errors).toEqual([null, wrong, wrong, wrong, null])
      expect(lines).toHaveLength(2)
    })
  )

  it.effect("with eip712 are typed data or wrapped; what is neither tells what is missing", () =>
    Effect.gen(function* () {
      const document = JSON.stringify({
        types: { It: [{ name: "x", type: "uint256" }] },
        primaryType: "It",
        domain: { name: "d", chainId: 5 },
        message: { x: 1 }
      })
      const given = { address: `0x${"cc".repeat(20)}`, chainId: "5" }
      const both = yield* answer({ messages: [document, "hello"], eip712: given })
      expect(both.errors).toBeNull()
      const other = yield* answer({ messages: [document, "hello"], eip712: { ...given, chainId: "0x6" } })
      expect(other.errors).toEqual(["domain.chainId contradicts eip712", null])
      const bare = yield* answer({ messages: [document, "hello"], eip712: {} })
      expect(bare.errors).toEqual([
        null,
        "a message that is no typed data needs eip712.address and eip712.chainId"
      ])
      const none = yield* answer({ messages: [document], format: "hex" })
      expect(verifyMessage(document, String(none.signatures[0]))).toBe(address)
    })
  )

  it.effect("none at all get no signatures and no errors", () =>
    Effect.map(answer({ messages: [] }), ({ errors, lines, signatures }) => {
      expect([errors, lines, signatures]).toEqual([null, [], []])
    })
  )

  it.effect("are refused with hashed and eip712 together", () =>
    Effect.map(run({ messages: ["x"], hashed: true, eip712: {} }), ({ lines, outcome }) => {
      expect(outcome).toMatchObject({
        _tag: "Left",
        left: { code: "invalid_request", details: [{ path: "hashed" }] }
      })
      expect(lines).toEqual([])
    })
  )

  it.effect("are all asked for at once", () =>
    Effect.gen(function* () {
      let waiting = 0
      const together: Signer["sign"] = (digest) =>
        Effect.sync(() => {
          waiting += 1
        }).pipe(
          Effect.zipRight(Effect.repeat(Effect.yieldNow(), { until: () => waiting === 40 })),
          Effect.zipRight(good(digest))
        )
      const messages = Array.from({ length: 40 }, (_, n) => `message ${n}`)
      const { signatures } = yield* answer({ messages, format: "hex" }, together)
      for (const [index, message] of messages.entries())
        expect(verifyMessage(message, String(signatures[index]))).toBe(address)
    })
  )
})

describe("a key that does not sign", () => {
  it.effect("fails the message alone while others are signed", () =>
    Effect.gen(function* () {
      const refusing: Signer["sign"] = (digest) =>
        digest === hashMessage("second") ? Effect.fail(down) : good(digest)
      const { errors, lines, signatures } = yield* answer(
        { messages: ["first", "second", "third"] },
        refusing
      )
      expect(errors).toEqual([null, "the key provider did not answer", null])
      expect(signatures.map((each) => each !== null)).toEqual([true, false, true])
      expect(lines.map(({ message }) => message).sort()).toEqual([
        "digest not signed",
        "digest signed",
        "digest signed"
      ])
    })
  )

  it.effect("at all refuses the request, each message by its place", () =>
    Effect.map(
      run({ messages: ["a", "\ud800"] }, () => Effect.fail(down)),
      ({ outcome }) => {
        expect(outcome).toMatchObject({
          _tag: "Left",
          left: {
            code: "signer_unavailable",
            details: [
              { path: "messages[0]", message: "the key provider did not answer" },
              { path: "messages[1]", message: "expected well-formed text" }
            ]
          }
        })
      }
    )
  )
})

describe("the log", () => {
  it.effect("has every digest with who asked and who signed, and of the message nothing", () =>
    Effect.gen(function* () {
      const messages = ["pay to nobody in particular", `0x${"abcd".repeat(9)}`]
      const { lines } = yield* answer({ messages })
      const digests = [hashMessage(String(messages[0])), hashMessage(getBytes(String(messages[1])))]
      expect(lines).toHaveLength(2)
      for (const digest of digests)
        expect(lines).toContainEqual({
          message: "digest signed",
          requestId: "request-1",
          accountId: "acme",
          signer: address,
          digest,
          purpose: "sign"
        })
      const text = JSON.stringify(lines)
      for (const message of messages) expect(text).not.toContain(message.slice(0, 12))
    })
  )
})
