import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { JournalError } from "../../application/ports/journal/JournalError.js"
import * as Compact from "./Compact.js"

/** Text at rest that only the holder of the key reads, bound to the row that it stands in. */
export interface Seal {
  readonly close: (row: string, text: string) => string
  readonly open: (row: string, sealed: string) => Effect.Effect<string, JournalError>
}

/** Of the text as it is, and of one that was deflated before. */
const plain = "v1:"
const short = "v2:"
const algorithm = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16

/** AES-256-GCM under a key of its own; the row's name is authenticated, so that no text moves to another row. */
export const make = (secret: Redacted.Redacted<string>): Seal => {
  const key = new Uint8Array(hkdfSync("sha256", Redacted.value(secret), "", "castellan journal", 32))
  return {
    close: (row, text) => {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(row))
      const deflated = Compact.deflated(text)
      const body = cipher.update(deflated ?? Buffer.from(text, "utf8"))
      const sealed = Buffer.concat([nonce, body, cipher.final(), cipher.getAuthTag()])
      return (deflated === null ? plain : short) + sealed.toString("base64")
    },
    open: (row, sealed) =>
      Effect.try({
        try: () => {
          const isShort = sealed.startsWith(short)
          if (!isShort && !sealed.startsWith(plain)) throw new Error("not sealed by this version")
          const bytes = Buffer.from(sealed.slice(plain.length), "base64")
          const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), {
            authTagLength: tagBytes
          })
            .setAAD(Buffer.from(row))
            .setAuthTag(bytes.subarray(-tagBytes))
          const body = bytes.subarray(nonceBytes, -tagBytes)
          const text = Buffer.concat([decipher.update(body), decipher.final()])
          return isShort ? Compact.inflated(text) : text.toString("utf8")
        },
        catch: () =>
          new JournalError({
            message: "sealed text of the journal cannot be read: it was sealed under another key, or changed"
          })
      })
  }
}
