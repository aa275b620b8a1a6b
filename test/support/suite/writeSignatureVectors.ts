import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { concat, hexlify, id } from "ethers"
import { type Answer, encoded, respond } from "../passkeys/Authenticator.js"
import { devKey } from "./Chain.js"
import { assertionOf, configOf, ecdsa, indexIn, type Passkey, passkeyFrom, personal } from "./Keys.js"
import { type Conditions, type Config, mixedProof, opSignature, signingHash, unbound } from "./Layouts.js"

/**
 * Writes test/vectors/signatures.json: the whole way from what an owner or a browser hands out to the op's signature,
 * for every form of proof. `npx tsx test/support/suite/writeSignatureVectors.ts`. P-256 signatures differ with every run.
 */

const owners = Array.from({ length: 16 }, (_, index) => devKey(20 + index))
const [a, b, c, stranger] = [devKey(20), devKey(21), devKey(22), devKey(40)]
const passkeys = [
  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgW4bLjSa+UNqM/Fgyddkvc1y9rVRjQRLZ3g8OYRztA/qhRANCAAToM0Uf+Vs+1ci6b4KaLp9msjCq1PePZ18QMIVoB/E9ODT/3N1G6CfAdy8xIvMq0ygFrlbs8E85k1AfPgEgy6QU",
  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgprNdjMUK4ljlqwN4+pqFeCfQ/1y0WQiYRHuWeLugHpShRANCAATgDJRuI2T4VPJjZwtY0WKaEoOc6jn3o5z8HIWTEQFnWbxJ/iNvKjNRog79bsQR6XCU3+mfE0GC5jswc5fHDcIQ"
].map(passkeyFrom)
const [p, q] = passkeys
if (p === undefined || q === undefined) throw new Error("two passkeys")

const [single, either, multisig, all, union, keyed] = [
  configOf(1, [a]),
  configOf(2, [a], [p]),
  configOf(3, [a, b, c], [], 2),
  configOf(3, owners, [], 16),
  configOf(4, [a, b], [p, q], 3),
  configOf(5, [], [p, q])
]

const userOpHash = id("an operation")
const bundled: Conditions = { validUntil: 1_800_000_000, validAfter: 0, bundler: b.address }
const bound: Conditions = { validUntil: 1_800_000_000, validAfter: 1_700_000_000, bundler: b.address }

interface Given {
  readonly about: string
  readonly config: Config
  readonly conditions: Conditions
  readonly valid?: false
  /** Signatures over this hash. */
  readonly signatures?: (hash: string) => string
  readonly by?: ReadonlyArray<Passkey>
  readonly answer?: Answer
  /** What is signed in place of the signing hash. */
  readonly over?: string
  /** Position of the passkeys in place of the right one. */
  readonly index?: number
}

const by =
  (...keys: ReadonlyArray<typeof a>) =>
  (hash: string) =>
    ecdsa(hash, ...keys)

const given: ReadonlyArray<Given> = [
  { about: "one signature", config: single, conditions: unbound, signatures: by(a) },
  { about: "one signature, bound", config: single, conditions: bound, signatures: by(a) },
  {
    about: "one personal message",
    config: single,
    conditions: bundled,
    signatures: (hash) => personal(hash, a)
  },
  { about: "the owner beside passkeys", config: either, conditions: bound, signatures: by(a) },
  { about: "2 of 3 signatures", config: multisig, conditions: unbound, signatures: by(c, a) },
  {
    about: "3 of 3 signatures, one of them a personal message, bound",
    config: multisig,
    conditions: bound,
    signatures: (hash) => concat([ecdsa(hash, b), personal(hash, c), ecdsa(hash, a)])
  },
  {
    about: "16 of 16 signatures, bound",
    config: all,
    conditions: bound,
    signatures: by(...owners.toReversed())
  },
  { about: "a passkey", config: keyed, conditions: unbound, by: [q] },
  { about: "a passkey, bound", config: keyed, conditions: bound, by: [p] },
  {
    about: "a passkey with further members and of a key that is backed up, bound",
    config: keyed,
    conditions: bundled,
    by: [p],
    answer: {
      flags: 0x1d,
      more: ',"other_keys_can_be_added_here":"do not compare clientDataJSON against a template"'
    }
  },
  { about: "a passkey beside the owner", config: either, conditions: bound, by: [p] },
  { about: "both passkeys", config: keyed, conditions: bound, by: [p, q] },
  { about: "the owner and a passkey", config: either, conditions: unbound, signatures: by(a), by: [p] },
  {
    about: "one signature and two passkeys of 3 of 4, bound",
    config: union,
    conditions: bound,
    signatures: by(b),
    by: [p, q]
  },
  {
    about: "two signatures and one passkey of 3 of 4",
    config: union,
    conditions: unbound,
    signatures: by(b, a),
    by: [q]
  },
  { about: "too few", config: multisig, conditions: bound, signatures: by(a), valid: false },
  {
    about: "too few of either kind",
    config: union,
    conditions: bound,
    signatures: by(a),
    by: [p],
    valid: false
  },
  {
    about: "a stranger among them",
    config: multisig,
    conditions: bound,
    signatures: by(a, b, stranger),
    valid: false
  },
  { about: "an owner twice", config: multisig, conditions: bound, signatures: by(a, a), valid: false },
  { about: "a passkey twice", config: union, conditions: bound, signatures: by(a), by: [p, p], valid: false },
  {
    about: "userOpHash signed, though bound",
    config: multisig,
    conditions: bound,
    signatures: by(a, b),
    over: userOpHash,
    valid: false
  },
  {
    about: "a challenge of userOpHash, though bound",
    config: keyed,
    conditions: bound,
    by: [p],
    over: userOpHash,
    valid: false
  },
  {
    about: "another passkey's index",
    config: keyed,
    conditions: bound,
    by: [p],
    index: 1 - indexIn(keyed, p),
    valid: false
  },
  { about: "an index that is none", config: keyed, conditions: bound, by: [p], index: 2, valid: false },
  {
    about: "a user who was not verified",
    config: keyed,
    conditions: bound,
    by: [p],
    answer: { flags: 1 },
    valid: false
  },
  {
    about: "a user who was not present",
    config: keyed,
    conditions: bound,
    by: [p],
    answer: { flags: 4 },
    valid: false
  },
  {
    about: "a key backed up that may not be",
    config: keyed,
    conditions: bound,
    by: [p],
    answer: { flags: 0x15 },
    valid: false
  },
  {
    about: "a registration",
    config: keyed,
    conditions: bound,
    by: [p],
    answer: { type: "webauthn.create" },
    valid: false
  }
]

const vectors = given.map((each) => {
  const hash = signingHash(userOpHash, each.conditions)
  const signed = each.over ?? hash
  const signatures = each.signatures?.(signed) ?? "0x"
  const assertions = (each.by ?? []).map((passkey) => {
    const response = respond(signed, passkey, each.answer)
    return { index: each.index ?? indexIn(each.config, passkey), response }
  })
  const proof =
    assertions.length === 0
      ? signatures
      : mixedProof(
          signatures,
          assertions.map(({ index, response }) => ({ index, auth: assertionOf(response) }))
        )
  return {
    about: each.about,
    config: each.config,
    userOpHash,
    conditions: each.conditions,
    signingHash: hash,
    ecdsa: hexlify(signatures),
    passkeys: assertions.map(({ index, response }) => ({ index, response: encoded(response) })),
    proof,
    signature: opSignature(each.conditions, proof),
    valid: each.valid ?? true
  }
})

writeFileSync(
  fileURLToPath(new URL("../../vectors/signatures.json", import.meta.url)),
  `${JSON.stringify(
    {
      about:
        "op.signature from what owners and browsers give: ecdsa is r || s || v of each owner, passkeys are WebAuthn responses (base64url; the signature in DER, s in either half) with the key's position in config.passkeys",
      vectors
    },
    null,
    2
  )}\n`
)
