import { randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import pkcs11 from "pkcs11js"
import type { KeyProvider, KeyProviderError, ProviderKey } from "../../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../../domain/crypto/Secp256k1.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import type { Attribute, Handle } from "./Library.js"
import * as Token from "./Token.js"
import * as TokenFailure from "./TokenFailure.js"

/** Connection to a token. A key's name is its label, or `id:` and its id in hex. */
export type Options = Token.Options

/** A token's secp256k1 key pair that signs digests. */
interface KeyPair {
  readonly privateKey: Handle
  /** In the form of `Secp256k1`. */
  readonly publicKey: string
}

/** DER of the curve's name, 1.3.132.0.10. */
const curve = Buffer.from("06052b8104000a", "hex")

const byId = /^id:((?:[0-9a-f]{2})+)$/i

/** Attribute that a key's objects share: its id for `id:` and hex, otherwise its label. */
const attributeOf = (name: string): Attribute => {
  const id = byId.exec(name)?.[1]
  return id === undefined
    ? { type: pkcs11.CKA_LABEL, value: name }
    : { type: pkcs11.CKA_ID, value: Buffer.from(id, "hex") }
}

/** At most two objects with these attributes: two already make the name ambiguous. */
const objects = ({ call, handle }: Token.Session, ...template: ReadonlyArray<Attribute>) =>
  Effect.andThen(
    call("C_FindObjectsInit", handle, template),
    Effect.ensuring(call("C_FindObjects", handle, 2), Effect.ignore(call("C_FindObjectsFinal", handle)))
  )

/** An attribute in hex; empty when the token lacks it. */
const read = ({ call, handle }: Token.Session, object: Handle, type: number) =>
  call("C_GetAttributeValue", handle, object, [{ type }]).pipe(
    Effect.map(([attribute]) => Buffer.from(attribute?.value ?? []).toString("hex")),
    Effect.catchIf(
      ({ name }) => name === "CKR_ATTRIBUTE_TYPE_INVALID" || name === "CKR_ATTRIBUTE_SENSITIVE",
      () => Effect.succeed("")
    )
  )

/** A point, in the OCTET STRING of the standard or, from some tokens, bare. */
const pointShape = /^(?:04(?:21|41))?(0[23][0-9a-f]{64}|04[0-9a-f]{128})$/

const one = Effect.fnUntraced(function* (
  session: Token.Session,
  name: string,
  kind: number,
  what: string,
  absent: KeyProviderError
) {
  const [first, second] = yield* objects(session, { type: pkcs11.CKA_CLASS, value: kind }, attributeOf(name))
  if (first === undefined) {
    yield* Token.present(session)
    return yield* absent
  }
  if (second !== undefined)
    return yield* TokenFailure.make("unsuitable", `several ${what} keys are called ${JSON.stringify(name)}`)
  return first
})

const noPrivateKey = TokenFailure.make("notFound", "there is no private key of this name")
const noPublicKey = TokenFailure.make("unsuitable", "the private key has no public key of the same name")

/** Finds the only key with this name; checks the curve, and that signing needs no person at a keyboard. */
const find = Effect.fnUntraced(function* (
  session: Token.Session,
  name: string
): Effect.fn.Return<KeyPair, Token.Problem> {
  const privateKey = yield* one(session, name, pkcs11.CKO_PRIVATE_KEY, "private", noPrivateKey)
  const publicKey = yield* one(session, name, pkcs11.CKO_PUBLIC_KEY, "public", noPublicKey)
  if ((yield* read(session, publicKey, pkcs11.CKA_EC_PARAMS)) !== curve.toString("hex"))
    return yield* TokenFailure.make("unsuitable", "the key is not on the curve secp256k1")
  if (/^0*1$/.test(yield* read(session, privateKey, pkcs11.CKA_ALWAYS_AUTHENTICATE)))
    return yield* TokenFailure.make(
      "unsuitable",
      "CKA_ALWAYS_AUTHENTICATE: the key wants a login for each signature"
    )
  const point = pointShape.exec(yield* read(session, publicKey, pkcs11.CKA_EC_POINT))?.[1]
  const uncompressed = Secp256k1.fromPoint(point ?? "")
  if (uncompressed === null)
    return yield* TokenFailure.make("unsuitable", "CKA_EC_POINT is no point of secp256k1")
  return { privateKey, publicKey: uncompressed }
})

/** r and s (32 bytes each) over the digest itself: the token does not hash. */
const signature = Effect.fnUntraced(function* (
  { call, handle }: Token.Session,
  { privateKey }: KeyPair,
  digest: Uint8Array
) {
  yield* call("C_SignInit", handle, { mechanism: pkcs11.CKM_ECDSA }, privateKey)
  const bytes = Buffer.from(yield* call("C_SignAsync", handle, digest, new Uint8Array(128)))
  if (bytes.length !== 64)
    return yield* TokenFailure.make("unavailable", "the token's answer is not a signature of 64 bytes")
  const half = (from: number) => BigInt(`0x${bytes.subarray(from, from + 32).toString("hex")}`)
  return { r: half(0), s: half(32) }
})

const keyOf = (token: Token.Token, name: string): ProviderKey => {
  /** Object handles are valid as long as the connection. */
  const known = new WeakMap<Token.Connection, KeyPair>()
  const fresh = (session: Token.Session) =>
    Effect.tap(find(session, name), (pair) => Effect.sync(() => void known.set(session.connection, pair)))

  const sign = (digest: Hex.Bytes32) =>
    token.use(
      Effect.fnUntraced(function* (session) {
        const pair = known.get(session.connection) ?? (yield* fresh(session))
        return yield* signature(session, pair, Buffer.from(digest.slice(2), "hex"))
      })
    )

  return {
    type: "HSM",
    maxBatch: 1,
    publicKey: Effect.map(token.use(fresh), ({ publicKey }) => publicKey),
    sign: (digests) => Effect.forEach(digests, sign)
  }
}

/**
 * Provides keys of a PKCS #11 token. Logs in immediately, so that a wrong PIN fails the start. After the loss of a session,
 * login or token one call fails with `unavailable`; the next use reconnects.
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<KeyProvider, KeyProviderError, Scope.Scope> {
  const token = yield* Token.make(options)
  yield* token.connect
  return { key: (name) => keyOf(token, name) }
})

/** Length of a new key's id, in bytes: the most that some tokens accept. */
const idBytes = 2

/** Returns an id unused on the token. */
const unusedId = (session: Token.Session): Effect.Effect<Buffer, TokenFailure.Refusal> =>
  Effect.suspend(() => {
    const value = randomBytes(idBytes)
    return Effect.flatMap(objects(session, { type: pkcs11.CKA_ID, value }), (taken) =>
      taken.length === 0 ? Effect.succeed(value) : unusedId(session)
    )
  })

const templates = (names: ReadonlyArray<Attribute>) => ({
  publicKey: [
    { type: pkcs11.CKA_TOKEN, value: true },
    { type: pkcs11.CKA_PRIVATE, value: false },
    { type: pkcs11.CKA_VERIFY, value: true },
    { type: pkcs11.CKA_EC_PARAMS, value: curve },
    ...names
  ],
  privateKey: [
    { type: pkcs11.CKA_TOKEN, value: true },
    { type: pkcs11.CKA_PRIVATE, value: true },
    { type: pkcs11.CKA_SENSITIVE, value: true },
    { type: pkcs11.CKA_EXTRACTABLE, value: false },
    { type: pkcs11.CKA_SIGN, value: true },
    ...names
  ]
})

/** Signs a random digest with the new key and verifies it. */
const prove = Effect.fnUntraced(function* (session: Token.Session, pair: KeyPair) {
  const digest = randomBytes(32)
  const word = Hex.unsafe32(`0x${digest.toString("hex")}`)
  if (Secp256k1.prove(pair.publicKey, word, yield* signature(session, pair, digest)) === null)
    return yield* TokenFailure.make("unsuitable", "the new key's signature is not over the digest as it is")
})

/**
 * Creates a non-extractable secp256k1 key on the token under a new label, and tests a signature. Returns the public key in
 * the form of `Secp256k1`.
 */
export const create = Effect.fnUntraced(function* (
  options: Options,
  label: string
): Effect.fn.Return<string, KeyProviderError, Scope.Scope> {
  if (byId.test(label)) return yield* TokenFailure.make("refused", "a label cannot look like an id")
  const token = yield* Token.make(options)
  return yield* token.write(
    Effect.fnUntraced(function* (session) {
      const named = { type: pkcs11.CKA_LABEL, value: label }
      if ((yield* objects(session, named)).length > 0)
        return yield* TokenFailure.make("refused", `the token has a key ${JSON.stringify(label)} already`)
      const id = { type: pkcs11.CKA_ID, value: yield* unusedId(session) }
      const { privateKey, publicKey } = templates([named, id])
      const mechanism = { mechanism: pkcs11.CKM_EC_KEY_PAIR_GEN }
      yield* session.call("C_GenerateKeyPairAsync", session.handle, mechanism, publicKey, privateKey)
      const pair = yield* find(session, label)
      yield* prove(session, pair)
      return pair.publicKey
    })
  )
}, Effect.scoped)
