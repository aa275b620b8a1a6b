import { createHash, type KeyObject, sign } from "node:crypto"
import { getBytes } from "ethers"
import { newPasskey, type Passkey } from "../suite/Keys.js"

/** A software passkey authenticator behind a browser; it replies like `navigator.credentials`. */
export interface Authenticator {
  readonly passkey: Passkey
  /** `getPublicKey()` of the registration's response: SubjectPublicKeyInfo, DER. */
  readonly spki: Buffer
  /** The response to a `navigator.credentials.get()` with this challenge. */
  readonly get: (challenge: string, options?: GetOptions) => Assertion
}

/** The response's three parts in base64url without padding, or base64. */
export interface Assertion {
  readonly signature: string
  readonly authenticatorData: string
  readonly clientDataJSON: string
}

export interface GetOptions {
  readonly origin?: string
  readonly type?: string
  /** Authenticator flags: 0x01 user present, 0x04 user verified. */
  readonly flags?: number
  /** Members that browsers add after the four known ones. */
  readonly extra?: Readonly<Record<string, unknown>>
  /** The complete client data for a base64url challenge, instead of the default. */
  readonly json?: (challenge: string) => string
  /** Extension data after the counter. */
  readonly extensions?: Buffer
  readonly encoding?: "base64" | "base64url"
  /** Browsers return DER. */
  readonly form?: "der" | "ieee-p1363"
  /** The half of s; by default random. */
  readonly s?: "low" | "high"
}

const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

const isHigh = (raw: Buffer): boolean => BigInt(`0x${raw.subarray(32).toString("hex")}`) > order / 2n

const derInteger = (bytes: Buffer): Buffer => {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1
  const digits = bytes.subarray(start)
  const positive = (digits[0] ?? 0) < 0x80 ? digits : Buffer.concat([Buffer.of(0), digits])
  return Buffer.concat([Buffer.of(0x02, positive.length), positive])
}

const der = (raw: Buffer): Buffer => {
  const content = Buffer.concat([derInteger(raw.subarray(0, 32)), derInteger(raw.subarray(32))])
  return Buffer.concat([Buffer.of(0x30, content.length), content])
}

const signature = (message: Buffer, key: KeyObject, half: GetOptions["s"]): Buffer => {
  for (;;) {
    const raw = sign("sha256", message, { key, dsaEncoding: "ieee-p1363" })
    if (half === undefined || isHigh(raw) === (half === "high")) return raw
  }
}

/** An authenticator with this passkey, or a fresh one. */
export const make = (passkey: Passkey = newPasskey()): Authenticator => {
  const { privateKey, publicKey } = passkey
  const point = Buffer.concat([Buffer.of(4), getBytes(publicKey.x), getBytes(publicKey.y)])
  const header = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d030107034200", "hex")
  let counter = 0
  return {
    passkey,
    spki: Buffer.concat([header, point]),
    get: (challenge, options = {}) => {
      counter += 1
      const asked = Buffer.from(getBytes(challenge)).toString("base64url")
      const clientData = Buffer.from(
        options.json?.(asked) ??
          JSON.stringify({
            type: options.type ?? "webauthn.get",
            challenge: asked,
            origin: options.origin ?? "https://wallet.example",
            crossOrigin: false,
            ...options.extra
          })
      )
      const { hostname } = new URL(options.origin ?? "https://wallet.example")
      const count = Buffer.alloc(4)
      count.writeUInt32BE(counter)
      const authenticatorData = Buffer.concat([
        createHash("sha256").update(hostname).digest(),
        Buffer.of(options.flags ?? 0x05),
        count,
        options.extensions ?? Buffer.alloc(0)
      ])
      const message = Buffer.concat([authenticatorData, createHash("sha256").update(clientData).digest()])
      const raw = signature(message, privateKey, options.s)
      const encoded = (bytes: Buffer) => bytes.toString(options.encoding ?? "base64url")
      return {
        signature: encoded(options.form === "ieee-p1363" ? raw : der(raw)),
        authenticatorData: encoded(authenticatorData),
        clientDataJSON: encoded(clientData)
      }
    }
  }
}

/** The encodings of a public key that callers send. */
export const encodings = {
  "X || Y": ({ x, y }: Passkey["publicKey"]) => Buffer.concat([getBytes(x), getBytes(y)]),
  "04 || X || Y": ({ x, y }: Passkey["publicKey"]) => Buffer.concat([Buffer.of(4), getBytes(x), getBytes(y)]),
  compressed: ({ x, y }: Passkey["publicKey"]) =>
    Buffer.concat([Buffer.of(BigInt(y) % 2n === 0n ? 2 : 3), getBytes(x)]),
  SPKI: (key: Passkey["publicKey"]) => make({ publicKey: key } as Passkey).spki,
  COSE: ({ x, y }: Passkey["publicKey"]) =>
    Buffer.concat([
      Buffer.from("a5010203262001215820", "hex"),
      getBytes(x),
      Buffer.from("225820", "hex"),
      getBytes(y)
    ])
} as const
