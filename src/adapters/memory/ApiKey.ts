import { createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** Prefix of every key, so that people and secret scanners recognise a leaked one. */
const prefix = "cst_"

/** `cst_` and 32 random bytes in base64url: 43 characters. */
const shape = /^cst_[A-Za-z0-9_-]{43}$/

/** Creates a key. Show it once; only its hash is stored. */
export const issue: Effect.Effect<Redacted.Redacted<string>> = Effect.sync(() =>
  Redacted.make(`${prefix}${randomBytes(32).toString("base64url")}`)
)

/** Whether the text has the shape of a key. */
export const is = (text: string): boolean => shape.test(text)

/**
 * HMAC-SHA-256 of the key under the pepper, 64 lower-case hex digits. Stolen hashes reveal no keys and, without the pepper,
 * cannot even verify a guess.
 */
export const hash = (pepper: Redacted.Redacted<string>, key: Redacted.Redacted<string>): string =>
  hashWith(secretOf(pepper), key)

const secretOf = (pepper: Redacted.Redacted<string>): KeyObject =>
  createSecretKey(Redacted.value(pepper), "utf8")

const hashWith = (secret: KeyObject, key: Redacted.Redacted<string>): string =>
  createHmac("sha256", secret).update(Redacted.value(key), "utf8").digest("hex")

const minimalPepperBytes = 16

/** A service's hash function, which returns null for text that is not a key. Fails on a short pepper. */
export const hasher = (
  pepper: Redacted.Redacted<string>
): Result.Result<(key: Redacted.Redacted<string>) => string | null, string> => {
  if (Buffer.byteLength(Redacted.value(pepper), "utf8") < minimalPepperBytes)
    return Result.fail(`the pepper of the API keys has less than ${minimalPepperBytes} bytes`)
  const secret = secretOf(pepper)
  return Result.succeed((key) => (is(Redacted.value(key)) ? hashWith(secret, key) : null))
}
