import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import {
  getBytes,
  hashMessage,
  keccak256,
  SigningKey,
  TypedDataEncoder,
  verifyMessage,
  verifyTypedData
} from "ethers"
import * as SignMessages from "../../../../src/application/endpoints/signing/SignMessages.js"
import { type Signer, SignerError, Signers } from "../../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../../src/application/ports/Tenants.js"
import * as Secp256k1 from "../../../../src/domain/crypto/Secp256k1.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../../support/journal/InMemory.js"
import * as Log from "../../../support/Log.js"
import * as Ops from "../../../support/lanes/Ops.js"
import * as DecisionHook from "../../../support/memory/DecisionHook.js"
import * as Parties from "../../../support/Parties.js"
import { test } from "../../../support/Test.js"

const key = new SigningKey(`0x${"a1".repeat(32)}`)
const publicKey = key.publicKey.slice(2)
const address = Secp256k1.addressOf(publicKey)
const signer = { clientId: "client", versionId: "1" }
const caller = Parties.caller("request-1", "acme" as AccountId)

const good: Signer["sign"] = (digest) => Effect.sync(() => Hex.unsafe(key.sign(digest).serialized))
const down = new SignerError({ reason: "unavailable", message: "the key provider did not answer" })

/** The use case over one key, with all its log lines. */
const run = (body: object, sign: Signer["sign"] = good) =>
  Effect.gen(function* () {
    const decode = Schema.decodeUnknownSync(SignMessages.Request, { onExcessProperty: "error" })
    const logged = yield* Log.listen
    const outcome = yield* Effect.result(SignMessages.run(caller, decode({ signer, ...body }))).pipe(
      Effect.provideService(Signers, {
        resolve: () => Effect.succeed({ address, publicKey, type: "KMS", sign })
      }),
      Effect.provide(Layer.mergeAll(DecisionHook.layer, InMemory.policies, InMemory.budgets))
    )
    const lines = logged.map(({ annotations, message }) => ({ ...annotations, message }))
    return { lines, outcome }
  }).pipe(Effect.scoped)

const answer = (body: object, sign?: Signer["sign"]) =>
  Effect.map(run(body, sign), ({ lines, outcome }) => {
    if (outcome._tag === "Failure") throw new Error(outcome.failure.code)
    const [element] = Schema.encodeSync(SignMessages.Response)(outcome.success)
    if (element === undefined || outcome.success.length !== 1) throw new Error("expected one element")
    return { ...element, lines }
  })

describe("messages", () => {
  test("are signed so that any verifier recovers the signer, in every format", function* () {
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

  test("hashed by the caller are signed unchanged; only a message that is not 32 bytes fails", function* () {
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

  test("with eip712 are typed data or wrapped; anything else reports the missing fields", function* () {
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
      "a message other than typed data needs eip712.address and eip712.chainId"
    ])
    const none = yield* answer({ messages: [document], format: "hex" })
    expect(verifyMessage(document, String(none.signatures[0]))).toBe(address)
  })

  test("with broken typed data are not text, with eip712 and without", function* () {
    const good = { types: { It: [{ name: "x", type: "uint8" }] }, primaryType: "It", message: { x: 1 } }
    const text = JSON.stringify(good)
    const messages = [
      text.slice(0, -1),
      `\ufeff${text}`,
      JSON.stringify(text),
      JSON.stringify({ ...good, message: { x: 1, y: 2 } }),
      JSON.stringify({ ...good, types: undefined }),
      "{1, 2, 3}"
    ]
    for (const eip712 of [{ address: `0x${"cc".repeat(20)}`, chainId: "5" }, undefined]) {
      const { errors, signatures } = yield* answer({ messages, ...(eip712 && { eip712 }) })
      expect(errors).toEqual([
        `the typed data is not JSON: it ends too early, line 1, column ${text.length}`,
        "the typed data is not JSON: it begins with a byte order mark",
        "the typed data is encoded twice, as text inside of JSON: sign the document itself",
        "message.y: type It has no such member",
        "types: is missing",
        null
      ])
      expect(signatures.map((each) => each !== null)).toEqual([false, false, false, false, false, true])
    }
  })

  it.effect("an empty list gets no signatures and no errors", () =>
    Effect.map(answer({ messages: [] }), ({ errors, lines, signatures }) => {
      expect([errors, lines, signatures]).toEqual([null, [], []])
    })
  )

  it.effect("are refused with hashed and eip712 together", () =>
    Effect.map(run({ messages: ["x"], hashed: true, eip712: {} }), ({ lines, outcome }) => {
      expect(outcome).toMatchObject({
        _tag: "Failure",
        failure: { code: "invalid_request", details: [{ path: "hashed" }] }
      })
      expect(lines).toEqual([])
    })
  )

  test("are all signed concurrently", function* () {
    let waiting = 0
    const together: Signer["sign"] = (digest) =>
      Effect.sync(() => {
        waiting += 1
      }).pipe(
        Effect.andThen(Effect.repeat(Effect.yieldNow, { until: () => waiting === 40 })),
        Effect.andThen(good(digest))
      )
    const messages = Array.from({ length: 40 }, (_, n) => `message ${n}`)
    const { signatures } = yield* answer({ messages, format: "hex" }, together)
    for (const [index, message] of messages.entries())
      expect(verifyMessage(message, String(signatures[index]))).toBe(address)
  })
})

describe("a possible proof of an operation", () => {
  const guarded = "looks like an operation: set allowOperationHash"
  const contract = Address.unsafe(`0x${"cc".repeat(20)}`)
  const op: UserOperation.UserOperation = {
    ...Ops.plain,
    sender: contract,
    nonce: 7n,
    callData: Hex.unsafe("0xb61d27f6"),
    callGasLimit: 2n,
    preVerificationGas: 3n,
    maxFeePerGas: 4n,
    maxPriorityFeePerGas: 5n
  }
  const userOpHash = UserOperation.hash("v0.7", contract, 1n, op)
  const member = (name: string, type: string) => ({ name, type })
  const word = (n: bigint) => `0x${n.toString(16).padStart(64, "0")}`

  interface Document {
    readonly types: Record<string, Array<{ name: string; type: string }>>
    readonly primaryType: string
    readonly domain: Record<string, unknown>
    readonly message: Record<string, unknown>
  }
  const castellan = { name: "castellan", version: "1" }
  const conditions: Document = {
    types: {
      Conditions: [
        member("userOpHash", "bytes32"),
        member("validUntil", "uint48"),
        member("validAfter", "uint48"),
        member("bundler", "address")
      ]
    },
    primaryType: "Conditions",
    domain: castellan,
    message: { userOpHash, validUntil: 1_900_000_000, validAfter: 0, bundler: contract }
  }
  /** One struct of one member in a domain. */
  const single = (domain: Document["domain"], primaryType = "Other", type = "string", name = "contents") => ({
    types: { [primaryType]: [{ name, type }] },
    primaryType,
    domain,
    message: { [name]: type === "bytes" ? "0x19" : "text" }
  })
  const here = { chainId: "5", verifyingContract: contract }
  /** The op under the hash of EntryPoint v0.8, which is a document's digest. */
  const packed: Document = {
    types: {
      PackedUserOperation: [
        member("sender", "address"),
        member("nonce", "uint256"),
        member("initCode", "bytes"),
        member("callData", "bytes"),
        member("accountGasLimits", "bytes32"),
        member("preVerificationGas", "uint256"),
        member("gasFees", "bytes32"),
        member("paymasterAndData", "bytes")
      ]
    },
    primaryType: "PackedUserOperation",
    domain: { name: "ERC4337", version: "1", ...here },
    message: {
      sender: op.sender,
      nonce: "7",
      initCode: "0x",
      callData: op.callData,
      accountGasLimits: word((1n << 128n) | 2n),
      preVerificationGas: "3",
      gasFees: word((5n << 128n) | 4n),
      paymasterAndData: "0x"
    }
  }

  const messages = {
    "a userOpHash in hex": userOpHash,
    "a userOpHash in upper case": `0x${userOpHash.slice(2).toUpperCase()}`,
    "32 characters": "The quick brown fox jumps over a",
    "32 bytes of UTF-8 in fewer characters": "é".repeat(16),
    "32 bytes of emoji": "🦊".repeat(8)
  }
  const text = JSON.stringify(conditions)
  const declared = {
    EIP712Domain: [member("name", "string"), member("version", "string")],
    ...conditions.types
  }
  const larger = { Message: [member("contents", "string"), member("op", "bool")] }
  const documents = {
    conditions: text,
    "conditions, indented": `\n ${JSON.stringify(conditions, null, 2)}\n`,
    "conditions, escaped": text.replaceAll("castellan", "\\u0063astellan"),
    "conditions in a domain that declares its type": { ...conditions, types: declared },
    "another struct in our domain": single(castellan),
    "another version of our domain": single({ name: "castellan", version: "1.2", ...here }),
    "only the name": single({ name: "castellan" }),
    "another Message": single(castellan, "Message", "bytes"),
    "a Message of more": {
      ...single(castellan, "Message"),
      types: larger,
      message: { contents: "text", op: true }
    },
    "a personal message of a wallet": single(castellan, "PersonalSign", "bytes", "prefixed"),
    "an approval": single({ name: "castellan approvals", version: "1" }, "Content"),
    "a Message in the approvals' domain": single({ name: "castellan approvals" }, "Message"),
    "an op of EntryPoint v0.8": packed
  }

  it("includes the document whose digest is a userOpHash of EntryPoint v0.8", () => {
    expect(TypedDataEncoder.hash(packed.domain, packed.types, packed.message)).toBe(
      UserOperation.hash("v0.8", contract, 5n, op)
    )
  })

  for (const [name, message] of Object.entries(messages))
    test(`is refused, a message of ${name}`, function* () {
      const refused = yield* answer({ messages: [message, "hello"], format: "hex" })
      expect(refused.errors).toEqual([guarded, null])
      expect(refused.signatures.map((each) => each !== null)).toEqual([false, true])
      expect(refused.lines).toHaveLength(1)
      const allowed = yield* answer({ messages: [message], format: "hex", allowOperationHash: true })
      const signed = message.startsWith("0x") ? getBytes(message) : message
      expect(verifyMessage(signed, String(allowed.signatures[0]))).toBe(address)
      expect(allowed.lines).toEqual([expect.objectContaining({ allowOperationHash: true })])
    })

  for (const [name, document] of Object.entries(documents))
    test(`is refused, a document of ${name}`, function* () {
      const message = typeof document === "string" ? document : JSON.stringify(document)
      for (const eip712 of [{}, undefined]) {
        const asked = { messages: [message], format: "hex", ...(eip712 && { eip712 }) }
        expect((yield* answer(asked)).errors, JSON.stringify(eip712)).toEqual([guarded])
        const { errors, lines } = yield* answer({ ...asked, allowOperationHash: true })
        expect(errors).toBeNull()
        expect(lines).toEqual([expect.objectContaining({ allowOperationHash: true })])
      }
    })

  test("is refused in a domain that the request completes", function* () {
    const eip712 = { address: contract, chainId: "5" }
    const message = JSON.stringify(single(castellan, "Deploy"))
    expect((yield* answer({ messages: [message], eip712 })).errors).toEqual([guarded])
  })

  test("is the only rejected form: strings, other typed data, wrapped strings and hashes are signed", function* () {
    const around = ["x".repeat(31), "x".repeat(33), userOpHash.slice(2), `${userOpHash}00`, "é".repeat(32)]
    expect((yield* answer({ messages: around })).errors).toBeNull()
    expect((yield* answer({ messages: [userOpHash], hashed: true })).errors).toBeNull()
    const eip712 = { address: contract, chainId: "5" }
    const wrapped = single({ ...castellan, ...here }, "Message")
    const others = [
      userOpHash,
      "The quick brown fox jumps over a",
      JSON.stringify(wrapped),
      "text",
      JSON.stringify(single({ name: "Castellan" })),
      JSON.stringify(single({ version: "castellan" })),
      JSON.stringify(single({}))
    ]
    const { errors, lines, signatures } = yield* answer({ messages: others, eip712, format: "hex" })
    expect(errors).toBeNull()
    expect(signatures[2]).toBe(signatures[3])
    const { domain, message, types } = wrapped
    expect(verifyTypedData(domain, types, message, String(signatures[2]))).toBe(address)
    for (const line of lines) expect(line).not.toHaveProperty("allowOperationHash")
  })
})

describe("a key that does not sign", () => {
  test("fails only its message while others are signed", function* () {
    const refusing: Signer["sign"] = (digest) =>
      digest === hashMessage("second") ? Effect.fail(down) : good(digest)
    const { errors, lines, signatures } = yield* answer({ messages: ["first", "second", "third"] }, refusing)
    expect(errors).toEqual([null, "the key provider did not answer", null])
    expect(signatures.map((each) => each !== null)).toEqual([true, false, true])
    expect(lines.map(({ message }) => message).sort()).toEqual([
      "digest not signed",
      "digest signed",
      "digest signed"
    ])
  })

  it.effect("at all refuses the request, each message by its place", () =>
    Effect.map(
      run({ messages: ["a", "\ud800"] }, () => Effect.fail(down)),
      ({ outcome }) => {
        expect(outcome).toMatchObject({
          _tag: "Failure",
          failure: {
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

test("the log has every digest with its caller and signer, and no part of the message", function* () {
  const messages = ["pay no particular address", `0x${"abcd".repeat(9)}`]
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
