import { randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import pkcs11 from "pkcs11js"
import type { KeyProviderError } from "../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../domain/crypto/Secp256k1.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Failure from "./Failure.js"
import * as KeyPair from "./KeyPair.js"
import type { Attribute } from "./Library.js"
import * as Token from "./Token.js"

/** Bytes of a new key's id. Some tokens take no more. */
const idBytes = 2

/** An id that no object of the token has. */
const unusedId = (session: Token.Session): Effect.Effect<Buffer, Failure.Refusal> =>
  Effect.gen(function* () {
    const value = randomBytes(idBytes)
    const taken = yield* KeyPair.objects(session, { type: pkcs11.CKA_ID, value })
    return taken.length === 0 ? value : yield* unusedId(session)
  })

const templates = (names: ReadonlyArray<Attribute>) => ({
  publicKey: [
    { type: pkcs11.CKA_TOKEN, value: true },
    { type: pkcs11.CKA_PRIVATE, value: false },
    { type: pkcs11.CKA_VERIFY, value: true },
    { type: pkcs11.CKA_EC_PARAMS, value: KeyPair.curve },
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

/** Signs something with the new key, as the service will. */
const prove = (session: Token.Session, pair: KeyPair.KeyPair) =>
  Effect.gen(function* () {
    const digest = randomBytes(32)
    const signature = yield* KeyPair.sign(session, pair, digest)
    const word = Hex.unsafe32(`0x${digest.toString("hex")}`)
    if (Secp256k1.prove(pair.publicKey, word, signature) === null)
      return yield* Failure.make("unsuitable", "the new key's signature is not over the digest as it is")
  })

/**
 * Makes a secp256k1 key on the token, which never leaves it, under a label that nothing on the token has. The public
 * key, in the form of `Secp256k1`, of a key that has been seen to sign.
 */
export const create = (options: Token.Options, label: string): Effect.Effect<string, KeyProviderError> =>
  Effect.gen(function* () {
    if (KeyPair.isId(label)) return yield* Failure.make("refused", "a label can not look like an id")
    const token = yield* Token.make(options)
    return yield* token.write((session) =>
      Effect.gen(function* () {
        const named = { type: pkcs11.CKA_LABEL, value: label }
        if ((yield* KeyPair.objects(session, named)).length > 0)
          return yield* Failure.make("refused", `the token has a key ${JSON.stringify(label)} already`)
        const { privateKey, publicKey } = templates([
          named,
          { type: pkcs11.CKA_ID, value: yield* unusedId(session) }
        ])
        const mechanism = { mechanism: pkcs11.CKM_EC_KEY_PAIR_GEN }
        yield* session.call("C_GenerateKeyPairAsync", session.handle, mechanism, publicKey, privateKey)
        const pair = yield* KeyPair.find(session, label)
        yield* prove(session, pair)
        return pair.publicKey
      })
    )
  }).pipe(Effect.scoped)
