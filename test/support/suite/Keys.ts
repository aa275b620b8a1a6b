import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto"
import { p256 } from "@noble/curves/p256"
import { type BaseWallet, concat, getBytes, hashMessage, hexlify } from "ethers"
import { type Config, mixedProof, type PasskeyProof, type PublicKey } from "./Layouts.js"

/** r || s || v over the hash itself. */
export const ecdsa = (hash: string, ...owners: ReadonlyArray<BaseWallet>): string =>
  concat(owners.map((owner) => owner.signingKey.sign(hash).serialized))

/** r || s || v over the EIP-191 hash. */
export const personal = (hash: string, owner: BaseWallet): string =>
  owner.signingKey.sign(hashMessage(getBytes(hash))).serialized

const n256k1 = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const nP256 = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

const word = (value: bigint): string => `0x${value.toString(16).padStart(64, "0")}`

/** The same key's other signature of the message, with s above half the order. */
export const highS = (signature: string): string => {
  const s = n256k1 - BigInt(`0x${signature.slice(66, 130)}`)
  const v = signature.slice(130) === "1b" ? "1c" : "1b"
  return `${signature.slice(0, 66)}${word(s).slice(2)}${v}`
}

/** The same signature with v 0 or 1. */
export const parityV = (signature: string): string =>
  `${signature.slice(0, 130)}${signature.slice(130) === "1b" ? "00" : "01"}`

/** A passkey in software: a P-256 key that answers WebAuthn requests. */
export interface Passkey {
  readonly publicKey: PublicKey
  readonly privateKey: KeyObject
}

export const newPasskey = (): Passkey => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const jwk = privateKey.export({ format: "jwk" })
  const coordinate = (text: string | undefined) => hexlify(Buffer.from(text ?? "", "base64url"))
  return { privateKey, publicKey: { x: coordinate(jwk.x), y: coordinate(jwk.y) } }
}

interface AssertionOptions {
  readonly origin?: string
  readonly type?: string
  /** Authenticator flags; user present and user verified by default. */
  readonly flags?: number
  readonly highS?: boolean
  readonly index?: number
}

/** A browser's response as a proof, with s in the low half. */
export const assertionOf = ({
  authenticatorData,
  clientDataJSON,
  signature
}: {
  readonly signature: Uint8Array
  readonly authenticatorData: Uint8Array
  readonly clientDataJSON: Uint8Array
}): PasskeyProof["auth"] => {
  const { r, s } = p256.Signature.fromDER(signature)
  const json = Buffer.from(clientDataJSON).toString()
  return {
    r: word(r),
    s: word(s > nP256 / 2n ? nP256 - s : s),
    challengeIndex: json.indexOf('"challenge"'),
    typeIndex: json.indexOf('"type"'),
    authenticatorData: hexlify(authenticatorData),
    clientDataJSON: json
  }
}

/** A browser's response to this challenge, with s in the low half by default. */
export const assertion = (hash: string, passkey: Passkey, options: AssertionOptions = {}): PasskeyProof => {
  const challenge = Buffer.from(getBytes(hash)).toString("base64url")
  const type = options.type ?? "webauthn.get"
  const clientDataJSON = `{"type":"${type}","challenge":"${challenge}","origin":"${options.origin ?? "https://wallet.example"}","crossOrigin":false}`
  const rpIdHash = createHash("sha256").update("wallet.example").digest()
  const authenticatorData = Buffer.concat([rpIdHash, Buffer.from([options.flags ?? 0x05, 0, 0, 0, 1])])
  const signed = Buffer.concat([authenticatorData, createHash("sha256").update(clientDataJSON).digest()])
  const raw = sign("sha256", signed, { key: passkey.privateKey, dsaEncoding: "ieee-p1363" })
  const s = BigInt(hexlify(raw.subarray(32)))
  const low = s > nP256 / 2n ? nP256 - s : s
  return {
    index: options.index ?? 0,
    auth: {
      r: hexlify(raw.subarray(0, 32)),
      s: word(options.highS === true ? nP256 - low : low),
      challengeIndex: clientDataJSON.indexOf('"challenge"'),
      typeIndex: clientDataJSON.indexOf('"type"'),
      authenticatorData: hexlify(authenticatorData),
      clientDataJSON
    }
  }
}

/** A proof of a single passkey. */
export const passkeyProof = (hash: string, passkey: Passkey, options: AssertionOptions = {}): string =>
  mixedProof("0x", [assertion(hash, passkey, options)])

const byKey = (a: PublicKey, b: PublicKey) => (a.x + a.y < b.x + b.y ? -1 : 1)

/** A configuration with sorted lists. */
export const configOf = (
  custody: number,
  owners: ReadonlyArray<BaseWallet> = [],
  passkeys: ReadonlyArray<Passkey> = [],
  threshold = 1
): Config => ({
  custody,
  threshold,
  owners: owners.map((owner) => owner.address).sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1)),
  passkeys: passkeys.map((passkey) => passkey.publicKey).sort(byKey)
})

/** The position of a passkey in a configuration. */
export const indexIn = (config: Config, passkey: Passkey): number =>
  config.passkeys.findIndex((key) => key.x === passkey.publicKey.x && key.y === passkey.publicKey.y)
