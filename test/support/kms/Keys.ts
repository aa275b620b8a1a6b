import { createPublicKey, generateKeyPairSync, randomInt } from "node:crypto"
import { SigningKey } from "ethers"

/** A key in a provider's store. */
export interface StoredKey {
  readonly kind: "secp256k1" | "p256" | "rsa"
  /** SubjectPublicKeyInfo in DER. */
  readonly spki: Buffer
  /** Signs 32 bytes without hashing; s is in either half, as with real providers. */
  readonly sign: (digest: Uint8Array) => { readonly r: bigint; readonly s: bigint }
}

export interface Secp256k1Key extends StoredKey {
  readonly kind: "secp256k1"
  /** Uncompressed, 130 digits, computed by ethers. */
  readonly publicKey: string
  readonly x: Buffer
  readonly y: Buffer
}

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

export const secp256k1 = (privateKey: string): Secp256k1Key => {
  const signing = new SigningKey(privateKey)
  const publicKey = signing.publicKey.slice(2)
  const point = Buffer.from(publicKey, "hex")
  const [x, y] = [point.subarray(1, 33), point.subarray(33)]
  return {
    kind: "secp256k1",
    publicKey,
    x,
    y,
    spki: createPublicKey({
      key: { kty: "EC", crv: "secp256k1", x: x.toString("base64url"), y: y.toString("base64url") },
      format: "jwk"
    }).export({ format: "der", type: "spki" }),
    sign: (digest) => {
      const { r, s } = signing.sign(digest)
      return { r: BigInt(r), s: randomInt(2) === 0 ? BigInt(s) : order - BigInt(s) }
    }
  }
}

const unable = () => {
  throw new Error("this key signs nothing here")
}

export const p256 = (): StoredKey => ({
  kind: "p256",
  spki: generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey.export({
    format: "der",
    type: "spki"
  }),
  sign: unable
})

export const rsa = (): StoredKey => ({
  kind: "rsa",
  spki: generateKeyPairSync("rsa", { modulusLength: 2_048 }).publicKey.export({
    format: "der",
    type: "spki"
  }),
  sign: unable
})

/** SEQUENCE { INTEGER r, INTEGER s }, as providers send it. */
export const der = ({ r, s }: { readonly r: bigint; readonly s: bigint }): Buffer => {
  const integer = (value: bigint) => {
    const digits = value.toString(16)
    const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex")
    const body = (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes
    return Buffer.concat([Buffer.of(2, body.length), body])
  }
  const body = Buffer.concat([integer(r), integer(s)])
  return Buffer.concat([Buffer.of(0x30, body.length), body])
}
