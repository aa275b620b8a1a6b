import { randomBytes } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { keccak256 } from "ethers"
import * as Pkcs11KeyProvider from "../../../../src/adapters/keys/pkcs11/KeyProvider.js"
import type { KeyProvider, KeyProviderError } from "../../../../src/application/ports/KeyProvider.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { keyProviderSuite } from "../../../ports/KeyProvider.suite.js"
import * as SoftHsm from "./SoftHsm.js"

const { CKA_ALWAYS_AUTHENTICATE, CKA_CLASS, CKA_ID, CKA_LABEL, CKA_SIGN, CKA_TOKEN, CKA_VALUE } =
  SoftHsm.binding

const hsm = SoftHsm.make()
afterAll(() => hsm.remove())
beforeAll(() => {
  SoftHsm.within(hsm, (pkcs11, session) => {
    const key = (label: string, options: SoftHsm.KeyOptions = {}) =>
      SoftHsm.generate(pkcs11, session, label, options)
    key("main")
    key("by id", { id: Buffer.from("c0ffee", "hex") })
    key("nist", { curve: SoftHsm.curves.p256 })
    key("twin", { id: Buffer.from("01", "hex") })
    key("twin", { id: Buffer.from("02", "hex") })
    key("lonely", { publicLabel: "somebody else's" })
    key("attended", { more: [{ type: CKA_ALWAYS_AUTHENTICATE, value: true }] })
    key("idle", { more: [{ type: CKA_SIGN, value: false }] })
    pkcs11.C_CreateObject(session, [
      { type: CKA_CLASS, value: SoftHsm.binding.CKO_DATA },
      { type: CKA_TOKEN, value: true },
      { type: CKA_LABEL, value: "data" },
      { type: CKA_VALUE, value: Buffer.from("no key") }
    ])
  })
  SoftHsm.initToken(hsm, "double", "1234")
  SoftHsm.initToken(hsm, "double", "1234")
})

const digest = Hex.unsafe32(keccak256("0x5a"))

const open = (more: Partial<Pkcs11KeyProvider.Options> = {}) =>
  Pkcs11KeyProvider.make({
    module: SoftHsm.library,
    token: hsm.token,
    pin: Redacted.make(hsm.pin),
    ...more
  })

keyProviderSuite("PKCS #11 (SoftHSM2)", { make: open, keyName: "main", missingKeyName: "nobody" })

const over = <A, E>(body: (provider: KeyProvider) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(open(), body))

const told = ({ message, reason }: KeyProviderError) => ({ reason, message })

describe("PKCS #11", () => {
  it.live("PKCS #11 knows a key by its label and by its id in hex of either case", () =>
    over((provider) =>
      Effect.gen(function* () {
        const byLabel = yield* provider.key("by id").publicKey
        for (const name of ["id:c0ffee", "id:C0FFEE"]) {
          expect(yield* provider.key(name).publicKey).toBe(byLabel)
          expect(yield* provider.key(name).sign([digest])).toHaveLength(1)
        }
        expect(provider.key("main").type).toBe("HSM")
      })
    )
  )

  const unusable: ReadonlyArray<readonly [string, string, KeyProviderError["reason"], string]> = [
    ["on another curve", "nist", "unsuitable", "the key is not on the curve secp256k1"],
    ["whose label is another's too", "twin", "unsuitable", 'several private keys are called "twin"'],
    [
      "without a public half of its name",
      "lonely",
      "unsuitable",
      "the private key has no public key of the same name"
    ],
    [
      "that wants a login for each signature",
      "attended",
      "unsuitable",
      "CKA_ALWAYS_AUTHENTICATE: the key wants a login for each signature"
    ],
    ["with only a public half", "somebody else's", "notFound", "there is no private key of this name"],
    ["that is not a key", "data", "notFound", "there is no private key of this name"],
    ["of an id that nothing has", "id:0badc0de", "notFound", "there is no private key of this name"]
  ]
  for (const [what, name, reason, message] of unusable)
    it.live(`a key ${what} is ${reason}, for its public key and for signing`, () =>
      over((provider) =>
        Effect.gen(function* () {
          const key = provider.key(name)
          const expected = { reason, message: `PKCS #11: ${message}` }
          expect(told(yield* Effect.flip(key.publicKey))).toEqual(expected)
          expect(told(yield* Effect.flip(key.sign([digest])))).toEqual(expected)
        })
      )
    )

  it.live("a key that may not sign is unsuitable, by the name of what the token answers", () =>
    over((provider) =>
      Effect.gen(function* () {
        expect(told(yield* Effect.flip(provider.key("idle").sign([digest])))).toEqual({
          reason: "unsuitable",
          message: "PKCS #11: CKR_KEY_FUNCTION_NOT_PERMITTED"
        })
      })
    )
  )

  it.live("PKCS #11 distinguishes keys of the same label by their ids", () =>
    over((provider) =>
      Effect.gen(function* () {
        const [one, two] = yield* Effect.all([
          provider.key("id:01").publicKey,
          provider.key("id:02").publicKey
        ])
        expect(one).not.toBe(two)
      })
    )
  )

  it.live("an unusable PKCS #11 key leaves the other keys usable", () =>
    over((provider) =>
      Effect.gen(function* () {
        for (const name of ["nist", "twin", "idle", "nobody", "nist", "twin", "idle", "nobody"])
          yield* Effect.flip(provider.key(name).sign([digest]))
        expect(yield* provider.key("main").sign([digest, digest])).toHaveLength(2)
      })
    )
  )

  it.live("PKCS #11 signs over any number of concurrent sessions, from one to more than requested", () =>
    Effect.forEach([1, 2, 8], (sessions) =>
      Effect.scoped(
        Effect.gen(function* () {
          const key = (yield* open({ sessions })).key("main")
          const digests = Array.from({ length: 40 }, () =>
            Hex.unsafe32(`0x${randomBytes(32).toString("hex")}`)
          )
          const signed = yield* Effect.forEach(digests, (each) => key.sign([each]), {
            concurrency: "unbounded"
          })
          expect(new Set(signed.map(([signature]) => signature?.r)).size).toBe(40)
        })
      )
    )
  )
})

describe("the start of a PKCS #11 provider", () => {
  const refused = (more: Partial<Pkcs11KeyProvider.Options>) =>
    Effect.map(Effect.flip(Effect.scoped(open(more))), told)

  it.live("a starting PKCS #11 provider reports a missing token, which may be plugged in later", () =>
    Effect.gen(function* () {
      expect(yield* refused({ token: "nowhere" })).toEqual({
        reason: "unavailable",
        message: 'PKCS #11: there is no token "nowhere"'
      })
    })
  )

  it.live("a starting PKCS #11 provider refuses to choose between tokens of one label", () =>
    Effect.gen(function* () {
      expect(yield* refused({ token: "double", pin: Redacted.make("1234") })).toEqual({
        reason: "refused",
        message: 'PKCS #11: several tokens are called "double"'
      })
    })
  )

  it.live("a PKCS #11 provider reports a missing or invalid library without its path", () =>
    Effect.gen(function* () {
      for (const module of ["/nowhere/libnothing.so", process.execPath, hsm.folder])
        expect(yield* refused({ module })).toEqual({
          reason: "refused",
          message: "PKCS #11: the library cannot be loaded"
        })
    })
  )
})

describe("a key on the token", () => {
  it("a key on the token cannot be read, copied out or made readable by a program that is logged in", () => {
    SoftHsm.within(hsm, (pkcs11, session) => {
      const { CKA_EXTRACTABLE, CKA_SENSITIVE, CKO_PRIVATE_KEY } = SoftHsm.binding
      pkcs11.C_FindObjectsInit(session, [
        { type: CKA_CLASS, value: CKO_PRIVATE_KEY },
        { type: CKA_ID, value: Buffer.from("main") }
      ])
      const [key] = pkcs11.C_FindObjects(session, 2)
      pkcs11.C_FindObjectsFinal(session)
      if (key === undefined) throw new Error("no key")
      const flags = pkcs11.C_GetAttributeValue(session, key, [
        { type: CKA_EXTRACTABLE },
        { type: CKA_SENSITIVE }
      ])
      expect(flags.map(({ value }) => value.toString("hex"))).toEqual(["00", "01"])
      expect(() => pkcs11.C_GetAttributeValue(session, key, [{ type: CKA_VALUE }])).toThrow(
        "CKR_ATTRIBUTE_SENSITIVE"
      )
      for (const change of [
        { type: CKA_EXTRACTABLE, value: true },
        { type: CKA_SENSITIVE, value: false }
      ])
        expect(() => pkcs11.C_SetAttributeValue(session, key, [change])).toThrow("CKR_ATTRIBUTE_READ_ONLY")
    })
  })
})
