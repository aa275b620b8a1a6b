import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { type KeyProvider, KeyProviderError, type ProviderKey } from "../../application/ports/KeyProvider.js"
import { type PrivateKey, privateKey } from "../../domain/crypto/Secp256k1.js"
import * as Hex from "../../domain/primitives/Hex.js"

/** A key encrypted under a password: a Web3 Secret Storage file, version 3, as written by geth, ethers and others. */
interface Keystore {
  readonly json: Redacted.Redacted<string>
  readonly password: Redacted.Redacted<string>
}

/** Keys by name: 32 bytes in hex with or without 0x, or an encrypted keystore. */
export interface Options {
  readonly keys: Readonly<Record<string, Redacted.Redacted<string> | Keystore>>
}

const keyShape = /^(?:0x)?[0-9a-fA-F]{64}$/

const unsuitable = (message: string) => new KeyProviderError({ reason: "unsuitable", message })
const noKey = unsuitable("no valid secp256k1 private key")
const notFound = new KeyProviderError({ reason: "notFound", message: "there is no private key of this name" })

/** Most memory for scrypt, in bytes, and most rounds of PBKDF2: four times the wallets' usual values. */
const mostMemory = 512 * 1_024 * 1_024
const mostRounds = 4_000_000

/** Wallets write names in different cases. */
const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null
    ? Object.entries(value).find(([key]) => key.toLowerCase() === name)?.[1]
    : undefined

const number = (value: unknown, name: string): number => {
  const found = member(value, name)
  return typeof found === "number" && found > 0 ? found : Number.NaN
}

/** Finds faults without the password. Bounds the work that a file can demand before it begins. */
const problemOf = (json: string): string | undefined => {
  const file = Result.getOrNull(Result.try((): unknown => JSON.parse(json)))
  if (file === null) return "is not JSON"
  if (String(member(file, "version")) !== "3") return "is not of version 3"
  const crypto = member(file, "crypto")
  const params = member(crypto, "kdfparams")
  switch (member(crypto, "kdf")) {
    case "scrypt":
      return 128 * number(params, "n") * number(params, "r") * Math.max(1, number(params, "p") / 8) <=
        mostMemory
        ? undefined
        : "asks for more scrypt than is reasonable"
    case "pbkdf2":
      return number(params, "c") <= mostRounds ? undefined : "asks for more PBKDF2 rounds than is reasonable"
    default:
      return "is encrypted with neither scrypt nor pbkdf2"
  }
}

const wrongPassword = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && "argument" in cause && cause.argument === "password"

/** Decrypts the private key, in hex. Blocks the process for about a second: only for the start. */
const decrypt = ({ json, password }: Keystore) =>
  Effect.suspend(() => {
    const problem = problemOf(Redacted.value(json))
    if (problem !== undefined) return unsuitable(`the keystore ${problem}`)
    return Effect.tryPromise({
      try: async () => {
        // Loaded only for keystores: it is large.
        const { decryptKeystoreJson } = await import("ethers/wallet")
        return (await decryptKeystoreJson(Redacted.value(json), Redacted.value(password))).privateKey
      },
      // Drops the cause: it may quote the file.
      catch: (cause) =>
        unsuitable(
          wrongPassword(cause)
            ? "the keystore does not open with this password"
            : "the keystore cannot be decrypted"
        )
    })
  })

/** Errors do not describe the text: a description may quote the key. */
const parse = (text: string) =>
  keyShape.test(text)
    ? Effect.mapError(Effect.fromResult(privateKey(Hex.unsafe32(`0x${text.slice(-64)}`))), () => noKey)
    : Effect.fail(noKey)

const load = (key: Redacted.Redacted<string> | Keystore) =>
  Redacted.isRedacted(key)
    ? Effect.suspend(() => parse(Redacted.value(key)))
    : Effect.flatMap(decrypt(key), parse)

const malformed = new KeyProviderError({ reason: "refused", message: "the digest is not 32 bytes" })

const providerKey = (key: Exit.Exit<PrivateKey, KeyProviderError>): ProviderKey => ({
  type: "PRIVATE_KEY",
  ...(Exit.isSuccess(key) && { signNow: key.value.sign }),
  publicKey: Effect.map(key, ({ publicKey }) => publicKey),
  maxBatch: 16,
  sign: (digests) =>
    Effect.flatMap(key, ({ sign }) =>
      Effect.forEach(digests, (digest) =>
        Effect.mapBoth(Effect.fromResult(Hex.from32(digest)), { onSuccess: sign, onFailure: () => malformed })
      )
    )
})

/** Holds keys in this process's memory. Keystores are decrypted here, one after the other, and never again. */
export const make = ({ keys }: Options): Effect.Effect<KeyProvider> =>
  Effect.gen(function* () {
    const ready = new Map<string, ProviderKey>()
    for (const [name, key] of Object.entries(keys))
      ready.set(name, providerKey(yield* Effect.exit(load(key))))
    const absent = providerKey(Exit.fail(notFound))
    return { key: (name) => ready.get(name) ?? absent }
  })
