import { ECDH, type KeyObject } from "node:crypto"
import { isoCBOR } from "@simplewebauthn/server/helpers"
import type { Passkey } from "../suite/Keys.js"

const coordinates = ({ publicKey }: Passkey): readonly [x: Buffer, y: Buffer] => [
  Buffer.from(publicKey.x.slice(2), "hex"),
  Buffer.from(publicKey.y.slice(2), "hex")
]

/** The members of a COSE_Key, by label. */
export type Members = ReadonlyArray<readonly [label: number, value: number | boolean | Uint8Array]>

/** A COSE_Key as another library encodes it. */
export const cose = (members: Members): Buffer => Buffer.from(isoCBOR.encode(new Map(members)))

/** The members of a passkey's COSE_Key, in the order of authenticators. */
export const coseMembers = (passkey: Passkey): Members => {
  const [x, y] = coordinates(passkey)
  return [
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, new Uint8Array(x)],
    [-3, new Uint8Array(y)]
  ]
}

/** SubjectPublicKeyInfo in DER, which a browser's getPublicKey() returns. */
export const spki = (publicKey: KeyObject): Buffer => publicKey.export({ format: "der", type: "spki" })

/** X and Y separately. */
export const halves = coordinates

const compressedSpki = (point: Buffer): Buffer =>
  Buffer.concat([Buffer.from("3039301306072a8648ce3d020106082a8648ce3d030107032200", "hex"), point])

/** The bytes of a passkey's public key in every encoding that a request may have, by name. */
export const encodings = (passkey: Passkey, publicKey: KeyObject): Readonly<Record<string, Buffer>> => {
  const [x, y] = coordinates(passkey)
  const point = Buffer.concat([Buffer.from([4]), x, y])
  const converted = ECDH.convertKey(point, "prime256v1", undefined, undefined, "compressed")
  const compressed = Buffer.isBuffer(converted) ? converted : Buffer.from(converted, "latin1")
  const members = coseMembers(passkey)
  const sign = (y.at(-1) ?? 0) % 2 === 1
  return {
    "X || Y": Buffer.concat([x, y]),
    "04 || X || Y": point,
    "a compressed point": compressed,
    SubjectPublicKeyInfo: spki(publicKey),
    "SubjectPublicKeyInfo, compressed": compressedSpki(compressed),
    COSE_Key: cose(members),
    "COSE_Key with the sign of y": cose(members.map(([label, value]) => [label, label === -3 ? sign : value]))
  }
}

/** base64 and base64url, with and without padding. */
export const spellings = (bytes: Uint8Array): ReadonlyArray<string> => {
  const [padded, url] = [Buffer.from(bytes).toString("base64"), Buffer.from(bytes).toString("base64url")]
  return [padded, padded.replace(/=+$/, ""), url, url.padEnd(padded.length, "=")]
}
