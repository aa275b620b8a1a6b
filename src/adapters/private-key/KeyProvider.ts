import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { type KeyProvider, KeyProviderError, type ProviderKey } from "../../application/ports/KeyProvider.js"
import { type PrivateKey, privateKey } from "../../domain/crypto/Secp256k1.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keystore from "./Keystore.js"

/** Keys by name: 32 bytes in hex with or without 0x, or an encrypted keystore. */
export interface Options {
  readonly keys: Readonly<Record<string, Redacted.Redacted<string> | Keystore.Keystore>>
}

const keyShape = /^(?:0x)?[0-9a-fA-F]{64}$/

const unsuitable = (message: string) => new KeyProviderError({ reason: "unsuitable", message })
const noKey = unsuitable("no valid secp256k1 private key")
const notFound = new KeyProviderError({ reason: "notFound", message: "there is no private key of this name" })

/** What is wrong with a text is not told: it may quote the key. */
const parsed = (text: string): Effect.Effect<PrivateKey, KeyProviderError> =>
  keyShape.test(text)
    ? Effect.mapError(Effect.fromResult(privateKey(Hex.unsafe32(`0x${text.slice(-64)}`))), () => noKey)
    : Effect.fail(noKey)

const loaded = (
  key: Redacted.Redacted<string> | Keystore.Keystore
): Effect.Effect<PrivateKey, KeyProviderError> =>
  Redacted.isRedacted(key)
    ? Effect.suspend(() => parsed(Redacted.value(key)))
    : Keystore.open(key).pipe(
        Effect.mapError(({ message }) => unsuitable(`the keystore ${message}`)),
        Effect.flatMap((opened) => parsed(Redacted.value(opened)))
      )

const malformed = new KeyProviderError({ reason: "refused", message: "the digest is not 32 bytes" })

const providerKey = (key: Effect.Effect<PrivateKey, KeyProviderError>): ProviderKey => ({
  type: "PRIVATE_KEY",
  publicKey: Effect.map(key, ({ publicKey }) => publicKey),
  maxBatch: 16,
  sign: (digests) =>
    Effect.flatMap(key, ({ sign }) =>
      Effect.forEach(digests, (digest) =>
        Effect.mapBoth(Effect.fromResult(Hex.from32(digest)), { onSuccess: sign, onFailure: () => malformed })
      )
    )
})

/** Keys that this process holds in memory. Keystores are decrypted here, one after the other, and never again. */
export const make = ({ keys }: Options): Effect.Effect<KeyProvider> =>
  Effect.gen(function* () {
    const ready = new Map<string, ProviderKey>()
    for (const [name, key] of Object.entries(keys))
      ready.set(name, providerKey(yield* Effect.exit(loaded(key))))
    const absent = providerKey(Effect.fail(notFound))
    return { key: (name) => ready.get(name) ?? absent }
  })
