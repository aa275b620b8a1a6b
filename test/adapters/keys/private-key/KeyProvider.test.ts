import { inspect } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { computeAddress, SigningKey } from "ethers"
import * as PrivateKeys from "../../../../src/adapters/keys/PrivateKeys.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { keyProviderSuite } from "../../../ports/KeyProvider.suite.js"
import { keystore, vectors } from "../../../support/signing/Keystores.js"

const text = `0x${"1".padStart(64, "ab")}`
const order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"

keyProviderSuite("private keys", {
  make: () => PrivateKeys.make({ keys: { key: Redacted.make(text) } }),
  keyName: "key",
  missingKeyName: "constructor"
})

keyProviderSuite("keystore files", {
  make: () => PrivateKeys.make({ keys: { key: keystore(text, "a password") } }),
  keyName: "key",
  missingKeyName: "no such key",
  digests: 50
})

const publicKey = (key: PrivateKeys.Options["keys"][string]) =>
  Effect.flatMap(PrivateKeys.make({ keys: { key } }), (provider) => provider.key("key").publicKey)
const refusal = (key: PrivateKeys.Options["keys"][string]) => Effect.flip(publicKey(key))

describe("a private key", () => {
  it.effect("a private key is taken with and without 0x, in either case", () =>
    Effect.gen(function* () {
      for (const each of [text, text.slice(2), `0x${text.slice(2).toUpperCase()}`])
        expect(computeAddress(`0x${yield* publicKey(Redacted.make(each))}`)).toBe(computeAddress(text))
    })
  )

  it.effect("a malformed private key is refused without its value", () =>
    Effect.gen(function* () {
      for (const wrong of [
        "",
        "0x",
        "0x1234",
        "z".repeat(64),
        "0".repeat(64),
        order,
        "f".repeat(64),
        `${text}00`,
        ` ${text}`
      ]) {
        const error = yield* refusal(Redacted.make(wrong))
        expect(error).toMatchObject({ reason: "unsuitable", message: "no valid secp256k1 private key" })
        if (wrong.length > 8)
          for (const shown of [
            inspect(error, { depth: 9, showHidden: true }),
            JSON.stringify(error),
            String(error.stack)
          ])
            expect(shown).not.toContain(wrong)
      }
    })
  )

  it.effect("a private key signs only 32 bytes", () =>
    Effect.gen(function* () {
      const provider = yield* PrivateKeys.make({ keys: { key: Redacted.make(text) } })
      expect((yield* Effect.flip(provider.key("key").sign([Hex.unsafe32("0x1234")]))).reason).toBe("refused")
    })
  )

  it.effect("a printed provider or key does not show the private key", () =>
    Effect.gen(function* () {
      const provider = yield* PrivateKeys.make({
        keys: { key: Redacted.make(text), file: keystore(text, "a password") }
      })
      for (const thing of [provider, provider.key("key"), provider.key("file")])
        for (const shown of [
          inspect(thing, { depth: 20, showHidden: true }),
          JSON.stringify(thing),
          String(thing)
        ]) {
          expect(shown).not.toContain(text.slice(2))
          expect(shown).not.toContain(BigInt(text).toString())
          expect(shown).not.toContain("a password")
        }
    })
  )
})

describe("a keystore file", () => {
  for (const { json, kdf, password, privateKey } of vectors)
    it.effect(`a foreign keystore file opens: ${kdf}`, () =>
      Effect.gen(function* () {
        const key = yield* publicKey({ json: Redacted.make(json), password: Redacted.make(password) })
        expect(`0x${key}`).toBe(new SigningKey(privateKey).publicKey)
      })
    )

  it.effect("a keystore file does not open with another password, and shows neither", () =>
    Effect.gen(function* () {
      const { json } = keystore(text, "a password")
      for (const password of ["another one", "", "a password "]) {
        const error = yield* refusal({ json, password: Redacted.make(password) })
        expect(error).toMatchObject({
          reason: "unsuitable",
          message: "the keystore does not open with this password"
        })
        const shown = inspect(error, { depth: 9, showHidden: true })
        if (password !== "") expect(shown).not.toContain(password)
      }
    })
  )

  const altered = (change: (file: ReturnType<typeof JSON.parse>) => unknown) => {
    const { json, password } = keystore(text, "a password")
    const file = JSON.parse(Redacted.value(json))
    return { json: Redacted.make(JSON.stringify(change(file) ?? file)), password }
  }
  const crypto = (file: ReturnType<typeof JSON.parse>) => file.Crypto
  const unusable: Readonly<Record<string, readonly [PrivateKeys.Options["keys"][string], string]>> = {
    "that is not JSON": [{ json: Redacted.make("{"), password: Redacted.make("x") }, "is not JSON"],
    "that is a text": [altered(() => "0x12"), "is not of version 3"],
    "of version 1": [altered((file) => ({ ...file, version: 1 })), "is not of version 3"],
    "without its encryption": [
      altered(({ address, id, version }) => ({ address, id, version })),
      "is encrypted with neither scrypt nor pbkdf2"
    ],
    "of another derivation": [
      altered((file) => {
        crypto(file).kdf = "argon2id"
      }),
      "is encrypted with neither scrypt nor pbkdf2"
    ],
    "that wants 16 GiB of memory": [
      altered((file) => {
        crypto(file).kdfparams.n = 2 ** 24
      }),
      "asks for more scrypt than is reasonable"
    ],
    "that wants years of time": [
      altered((file) => {
        crypto(file).kdfparams.p = 2 ** 30
      }),
      "asks for more scrypt than is reasonable"
    ],
    "without its parameters": [
      altered((file) => {
        crypto(file).kdfparams = null
      }),
      "asks for more scrypt than is reasonable"
    ],
    "of countless rounds": [
      altered((file) => {
        Object.assign(crypto(file), { kdf: "pbkdf2", kdfparams: { c: 1e12, dklen: 32, prf: "hmac-sha256" } })
      }),
      "asks for more PBKDF2 rounds than is reasonable"
    ],
    "of another cipher": [
      altered((file) => {
        crypto(file).cipher = "rot13"
      }),
      "cannot be decrypted"
    ],
    "that says another address": [
      altered((file) => ({ ...file, address: "00".repeat(20) })),
      "cannot be decrypted"
    ]
  }
  for (const [name, [key, why]] of Object.entries(unusable))
    it.effect(`${name} is refused`, () =>
      Effect.gen(function* () {
        expect((yield* refusal(key)).message).toBe(`the keystore ${why}`)
      })
    )

  it.effect("an unusable keystore file leaves the provider's other keys usable", () =>
    Effect.gen(function* () {
      const provider = yield* PrivateKeys.make({
        keys: { bad: { json: Redacted.make(""), password: Redacted.make("") }, good: Redacted.make(text) }
      })
      expect(yield* provider.key("good").publicKey).toMatch(/^04/)
    })
  )
})
