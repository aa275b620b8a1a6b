import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { computeHmac } from "ethers/crypto"
import * as Hex from "../primitives/Hex.js"

/**
 * Signatures of webhook messages by the Standard Webhooks specification: HMAC-SHA256 over id, time and body with a point
 * between them, under the base64 key behind `whsec_`.
 */

const prefix = "whsec_"

export interface Message {
  readonly id: string
  /** Unix seconds. */
  readonly timestamp: number
  readonly body: string
}

/** `v1,` and the signature in base64. A malformed secret signs with an empty key, which no receiver accepts. */
export const sign = (secret: string, { body, id, timestamp }: Message): string => {
  const key = Result.getOrElse(Base64.decode(secret.slice(prefix.length)), () => new Uint8Array())
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  return `v1,${Base64.encode(Hex.toBytes(Hex.unsafe(computeHmac("sha256", key, signed))))}`
}

/** The headers of a message; one signature for each secret. */
export const headers = (
  secrets: ReadonlyArray<string>,
  message: Message
): Readonly<Record<string, string>> => ({
  "webhook-id": message.id,
  "webhook-timestamp": String(message.timestamp),
  "webhook-signature": secrets.map((secret) => sign(secret, message)).join(" ")
})
