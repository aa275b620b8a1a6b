import * as Effect from "effect/Effect"
import pkcs11 from "pkcs11js"
import type { KeyProviderError } from "../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../domain/crypto/Secp256k1.js"
import * as Failure from "./Failure.js"
import type { Attribute, Handle } from "./Library.js"
import * as Token from "./Token.js"

/** A secp256k1 key of a token that signs digests. */
export interface KeyPair {
  readonly privateKey: Handle
  /** In the form of `Secp256k1`. */
  readonly publicKey: string
}

type Problem = Failure.Refusal | KeyProviderError

/** DER of the curve's name, 1.3.132.0.10. */
export const curve = Buffer.from("06052b8104000a", "hex")

const byId = /^id:((?:[0-9a-f]{2})+)$/i

/** True for a name that is an id, and so can be no label. */
export const isId = (name: string): boolean => byId.test(name)

/** What the objects of a key have in common: `id:` and the id in hex, or the label. */
export const attributeOf = (name: string): Attribute => {
  const id = byId.exec(name)?.[1]
  return id === undefined
    ? { type: pkcs11.CKA_LABEL, value: name }
    : { type: pkcs11.CKA_ID, value: Buffer.from(id, "hex") }
}

/** The first two objects with these attributes: more are as bad as two. */
export const objects = (
  { call, handle }: Token.Session,
  ...template: ReadonlyArray<Attribute>
): Effect.Effect<ReadonlyArray<Handle>, Failure.Refusal> =>
  Effect.andThen(
    call("C_FindObjectsInit", handle, template),
    Effect.ensuring(call("C_FindObjects", handle, 2), Effect.ignore(call("C_FindObjectsFinal", handle)))
  )

/** An attribute in hex; empty where the token has none of that type. */
const read = ({ call, handle }: Token.Session, object: Handle, type: number) =>
  call("C_GetAttributeValue", handle, object, [{ type }]).pipe(
    Effect.map(([attribute]) => Buffer.from(attribute?.value ?? []).toString("hex")),
    Effect.catchIf(
      ({ name }) => name === "CKR_ATTRIBUTE_TYPE_INVALID" || name === "CKR_ATTRIBUTE_SENSITIVE",
      () => Effect.succeed("")
    )
  )

/** A point in the OCTET STRING that the standard wants or, as some tokens have it, bare. */
const pointShape = /^(?:04(?:21|41))?(0[23][0-9a-f]{64}|04[0-9a-f]{128})$/

const one = (
  session: Token.Session,
  name: string,
  kind: number,
  absent: KeyProviderError,
  what: string
): Effect.Effect<Handle, Problem> =>
  Effect.gen(function* () {
    const [first, second] = yield* objects(
      session,
      { type: pkcs11.CKA_CLASS, value: kind },
      attributeOf(name)
    )
    if (first === undefined) {
      yield* Token.present(session)
      return yield* absent
    }
    if (second !== undefined)
      return yield* Failure.make("unsuitable", `several ${what} keys are called ${JSON.stringify(name)}`)
    return first
  })

/** The key of this name, which is one, on the right curve, and can sign without somebody at a keyboard. */
export const find = (session: Token.Session, name: string): Effect.Effect<KeyPair, Problem> =>
  Effect.gen(function* () {
    const privateKey = yield* one(
      session,
      name,
      pkcs11.CKO_PRIVATE_KEY,
      Failure.make("notFound", "there is no private key of this name"),
      "private"
    )
    const publicKey = yield* one(
      session,
      name,
      pkcs11.CKO_PUBLIC_KEY,
      Failure.make("unsuitable", "beside the private key there is no public key of its name"),
      "public"
    )
    if ((yield* read(session, publicKey, pkcs11.CKA_EC_PARAMS)) !== curve.toString("hex"))
      return yield* Failure.make("unsuitable", "the key is not on the curve secp256k1")
    if (/^0*1$/.test(yield* read(session, privateKey, pkcs11.CKA_ALWAYS_AUTHENTICATE)))
      return yield* Failure.make(
        "unsuitable",
        "CKA_ALWAYS_AUTHENTICATE: the key wants a login for each signature"
      )
    const point = pointShape.exec(yield* read(session, publicKey, pkcs11.CKA_EC_POINT))?.[1]
    const uncompressed = Secp256k1.fromPoint(point ?? "")
    if (uncompressed === null)
      return yield* Failure.make("unsuitable", "CKA_EC_POINT is no point of secp256k1")
    return { privateKey, publicKey: uncompressed }
  })

/** r and s of the digest as it is. */
export const sign = ({ call, handle }: Token.Session, { privateKey }: KeyPair, digest: Uint8Array) =>
  Effect.gen(function* () {
    yield* call("C_SignInit", handle, { mechanism: pkcs11.CKM_ECDSA }, privateKey)
    const signature = Buffer.from(yield* call("C_SignAsync", handle, digest, new Uint8Array(128)))
    if (signature.length !== 64)
      return yield* Failure.make("unavailable", "the token's answer is no signature of 64 bytes")
    const half = (from: number) => BigInt(`0x${signature.subarray(from, from + 32).toString("hex")}`)
    return { r: half(0), s: half(32) }
  })
