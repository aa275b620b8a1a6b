import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, randomFillSync } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { JournalError } from "../../application/ports/journal/JournalError.js"

/** Encrypts text at rest and binds it to its row. */
export interface Seal {
  readonly close: (row: string, text: string) => string
  readonly open: (row: string, sealed: string) => Effect.Effect<string, JournalError>
}

/** Opens a sealed URL; null: it was sealed under another key. */
export const openUrl = (
  seal: Seal,
  row: string,
  sealed: string
): Effect.Effect<Redacted.Redacted<string> | null> =>
  seal.open(row, sealed).pipe(
    Effect.map(Redacted.make<string>),
    Effect.orElseSucceed(() => null)
  )

const prefix = "v1:"
const algorithm = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16

/** Random nonces, each used once; read from the system in batches. */
const nonces = (): (() => Uint8Array) => {
  const pool = new Uint8Array(1_024 * nonceBytes)
  let used = pool.length
  return () => {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    used += nonceBytes
    return pool.slice(used - nonceBytes, used)
  }
}

/** AES-256-GCM with a derived key. It authenticates the row's name: sealed text does not open in another row. */
export const make = (secret: Redacted.Redacted<string>): Seal => {
  // A KeyObject: raw bytes would be imported on every call.
  const key = createSecretKey(
    new Uint8Array(hkdfSync("sha256", Redacted.value(secret), "", "castellan journal", 32))
  )
  const nextNonce = nonces()
  return {
    close: (row, text) => {
      const nonce = nextNonce()
      const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(row))
      const body = cipher.update(text, "utf8")
      return prefix + Buffer.concat([nonce, body, cipher.final(), cipher.getAuthTag()]).toString("base64")
    },
    open: (row, sealed) =>
      Effect.try({
        try: () => {
          if (!sealed.startsWith(prefix)) throw new Error("not sealed by this version")
          const bytes = Buffer.from(sealed.slice(prefix.length), "base64")
          const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), {
            authTagLength: tagBytes
          })
            .setAAD(Buffer.from(row))
            .setAuthTag(bytes.subarray(-tagBytes))
          const body = bytes.subarray(nonceBytes, -tagBytes)
          return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8")
        },
        catch: () =>
          new JournalError({
            message: "sealed text of the journal cannot be read: it was sealed under another key, or changed"
          })
      })
  }
}
