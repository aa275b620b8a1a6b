import { createHash, sign } from "node:crypto"
import { getBytes } from "ethers"
import type { Passkey } from "../suite/Keys.js"

/** Raw response of `navigator.credentials.get` in a browser. */
export interface Response {
  readonly signature: Buffer
  readonly authenticatorData: Buffer
  readonly clientDataJSON: Buffer
}

export interface Answer {
  readonly origin?: string
  readonly type?: string
  /** Further members, as JSON text that starts with a comma. */
  readonly more?: string
  /** User present and verified by default. */
  readonly flags?: number
  /** Bytes after the counter. */
  readonly extensions?: Uint8Array
  /** The complete clientDataJSON, instead of all options above. */
  readonly json?: string | Uint8Array
}

export const rpId = "wallet.example"
export const origin = "https://wallet.example"

/** A software passkey signs the challenge `hash`; like real authenticators, it uses low and high s. */
export const respond = (hash: string, passkey: Passkey, answer: Answer = {}): Response => {
  const challenge = Buffer.from(getBytes(hash)).toString("base64url")
  const text =
    answer.json ??
    `{"type":"${answer.type ?? "webauthn.get"}","challenge":"${challenge}","origin":"${answer.origin ?? origin}","crossOrigin":false${answer.more ?? ""}}`
  const clientDataJSON = Buffer.from(text)
  const authenticatorData = Buffer.concat([
    createHash("sha256").update(rpId).digest(),
    Buffer.from([answer.flags ?? 0x05, 0, 0, 0, 1]),
    answer.extensions ?? Buffer.alloc(0)
  ])
  const signed = Buffer.concat([authenticatorData, createHash("sha256").update(clientDataJSON).digest()])
  return {
    signature: sign("sha256", signed, { key: passkey.privateKey, dsaEncoding: "der" }),
    authenticatorData,
    clientDataJSON
  }
}

/** The response in base64url, for `/executePasskey`. */
export const encoded = ({ authenticatorData, clientDataJSON, signature }: Response) => ({
  signature: signature.toString("base64url"),
  authenticatorData: authenticatorData.toString("base64url"),
  clientDataJSON: clientDataJSON.toString("base64url")
})
