import * as Result from "effect/Result"
import { sha256 } from "ethers/crypto"
import * as Der from "../crypto/Der.js"
import * as P256 from "../crypto/P256.js"
import * as Base64 from "../primitives/Base64.js"
import * as Hex from "../primitives/Hex.js"
import * as Uint from "../primitives/Uint.js"
import type { PublicKey } from "../wallet/WalletConfig.js"
import * as ClientData from "./ClientData.js"

/** A passkey's assertion (WebAuthn Level 2, section 7.2), as wallets take it: Solidity's `struct WebAuthnAuth`. */
export interface Auth {
  readonly r: Hex.Bytes32
  /** In the lower half. */
  readonly s: Hex.Bytes32
  /** Byte of `clientDataJSON` at which `"challenge":"..."` begins, uint256. */
  readonly challengeIndex: bigint
  /** Byte of `clientDataJSON` at which `"type":"webauthn.get"` begins, uint256. */
  readonly typeIndex: bigint
  /** rpIdHash (32 bytes) || flags (1) || signCount (4) || extensions. */
  readonly authenticatorData: Hex.Hex
  readonly clientDataJSON: string
}

/*
 * Gas is estimated before signing, for the longest and costliest assertion within these bounds: gas beyond them would be
 * unpaid.
 */

/**
 * Most bytes of `clientDataJSON`. Browsers write 134 and the origin, at most 395, and some add a member of 110. The
 * additions of a cross-origin frame fit as long as both names together have less than 250 bytes.
 */
export const maxClientData = 512

/** Most bytes of `authenticatorData`: 37, and room for an extension such as `prf`, which adds 95. */
export const maxAuthenticatorData = 160

/** Most `ClientData.steps`: browsers that deviated from the specification's order needed 35 to 60. */
export const maxSteps = 64

/** rpIdHash, flags and signCount. */
const minAuthenticatorData = 37

/** Hex digits of `authenticatorData`, its 0x included, before the flags. */
const flagsAt = 2 + 2 * 32

const [userPresent, userVerified, backupEligible, backedUp] = [0x01, 0x04, 0x08, 0x10] as const

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const utf8Bytes = new TextEncoder()

/**
 * UTF-8 bytes to text; null if malformed.
 *
 * @example WebAuthn.textOf(Uint8Array.of(255))
 * // null
 */
export const textOf = (bytes: Uint8Array): string | null =>
  Result.getOrNull(Result.try(() => utf8.decode(bytes)))

/**
 * The UTF-8 bytes of `clientDataJSON`.
 *
 * @example WebAuthn.clientDataOf({ clientDataJSON: "{}" })
 * // "0x7b7d"
 */
export const clientDataOf = ({ clientDataJSON }: Pick<Auth, "clientDataJSON">): Hex.Hex =>
  Hex.fromText(clientDataJSON)

interface Members {
  readonly type: string
  readonly challenge: string
}

/** The two members that count, as JSON.parse understands them; null without both. */
const membersOf = (json: string): Members | null => {
  const value: unknown = Result.getOrNull(Result.try((): unknown => JSON.parse(json)))
  if (typeof value !== "object" || value === null || !("type" in value) || !("challenge" in value))
    return null
  const { challenge, type } = value
  return typeof type === "string" && typeof challenge === "string" ? { challenge, type } : null
}

const noObject = "expected a JSON object with type and challenge"
const spelled =
  'expected "type":"..." and "challenge":"..." as browsers write them, without white space or escapes'

/** Byte at which the member of the object itself begins, in the spelling that wallets expect. */
const find = (bytes: Uint8Array, name: string, value: string): bigint | null => {
  const text = utf8Bytes.encode(`"${name}":"${value}"`)
  const at = ClientData.outermostStrings(bytes).find((begin) => standsAt(bytes, begin, text))
  return at === undefined ? null : BigInt(at)
}

const standsAt = (bytes: Uint8Array, index: number, text: Uint8Array): boolean =>
  text.every((byte, offset) => bytes[index + offset] === byte)

/** Fields of an assertion as a browser gives them, each in base64 or base64url. */
export interface Encoded {
  /** DER of r and s, or r || s. */
  readonly signature: string
  readonly authenticatorData: string
  readonly clientDataJSON: string
}

/** The unreadable field of an assertion, and the reason. */
export interface Problem {
  readonly field: keyof Encoded
  readonly message: string
}

const word = (value: bigint): Hex.Bytes32 => Hex.unsafe32(`0x${Uint.toWord(value)}`)

const signatureOf = (bytes: Hex.Hex): Result.Result<P256.Signature, string> => {
  const signature =
    Hex.size(bytes) === 64
      ? Result.succeed({
          r: Hex.unsafe32(bytes.slice(0, 66)),
          s: Hex.unsafe32(`0x${bytes.slice(66)}`)
        })
      : Result.map(Der.signature(bytes), ({ r, s }) => ({ r: word(r), s: word(s) }))
  return Result.flatMap(
    Result.mapError(signature, () => "expected r || s (64 bytes) or the DER of r and s"),
    (read) => (P256.inRanges(read) ? Result.succeed(P256.toLow(read)) : Result.fail(outOfRange))
  )
}

const outOfRange = "r and s must be between 1 and the order of P-256"

/** Bytes of a field of at most `limit` bytes. Text that cannot be so short is not decoded. */
const bounded = (text: string, limit: number): Result.Result<Uint8Array, string> => {
  const tooLong = `expected at most ${limit} bytes`
  if (text.length > 4 * Math.ceil(limit / 3)) return Result.fail(tooLong)
  return Result.filterOrFail(
    Base64.decode(text),
    (bytes) => bytes.length <= limit,
    () => tooLong
  )
}

/** Most bytes of a signature in DER: two integers of 33 bytes and their headers. */
const maxSignature = 72

/**
 * The assertion, with s in the lower half. `check` judges its content, `signedBy` finds its key.
 *
 * @example Result.getOrThrow(Result.flip(WebAuthn.read({ signature: "", authenticatorData: "", clientDataJSON: "" }))).field
 * // "signature"
 */
export const read = (encoded: Encoded): Result.Result<Auth, Problem> =>
  Result.gen(function* () {
    const because = (field: Problem["field"]) => (message: string) => ({ field, message })
    const bytes = (field: Problem["field"], limit: number) =>
      Result.mapError(bounded(encoded[field], limit), because(field))
    const { r, s } = yield* Result.mapError(
      signatureOf(Hex.fromBytes(yield* bytes("signature", maxSignature))),
      because("signature")
    )
    const authenticatorData = Hex.fromBytes(yield* bytes("authenticatorData", maxAuthenticatorData))
    const clientData = yield* bytes("clientDataJSON", maxClientData)
    const clientDataJSON = textOf(clientData)
    const wrong = (message: string) => Result.fail(because("clientDataJSON")(message))
    if (clientDataJSON === null) return yield* wrong("expected UTF-8")
    const members = membersOf(clientDataJSON)
    if (members === null) return yield* wrong(noObject)
    const typeIndex = find(clientData, "type", members.type)
    const challengeIndex = find(clientData, "challenge", members.challenge)
    if (typeIndex === null || challengeIndex === null) return yield* wrong(spelled)
    return { r, s, challengeIndex, typeIndex, authenticatorData, clientDataJSON }
  })

const problemOfFlags = (flags: number): string | null => {
  if ((flags & userPresent) === 0) return "authenticatorData: the user was not present (flag UP)"
  if ((flags & userVerified) === 0) return "authenticatorData: the user was not verified (flag UV)"
  return (flags & backedUp) !== 0 && (flags & backupEligible) === 0
    ? "authenticatorData: the key says that it is backed up and may not be (flags BS and BE)"
    : null
}

/** Problem of client data without both members at their indexes. */
const problemOfMembers = (json: string, signingHash: Hex.Bytes32, challenge: string): string => {
  const members = membersOf(json)
  if (members === null) return noObject
  if (members.type !== "webauthn.get") return `expected type webauthn.get, but it is ${shown(members.type)}`
  if (members.challenge !== challenge)
    return `expected the challenge ${challenge}, which is base64url of the signing hash ${signingHash}, but it is ${shown(members.challenge)}`
  return `${spelled}, at typeIndex and challengeIndex`
}

const problemOf = (auth: Auth, signingHash: Hex.Bytes32): string | null => {
  const size = Hex.size(auth.authenticatorData)
  if (size < minAuthenticatorData || size > maxAuthenticatorData)
    return `authenticatorData: expected ${minAuthenticatorData} to ${maxAuthenticatorData} bytes, but there are ${size}`
  const bytes = auth.clientDataJSON.length > maxClientData ? null : utf8Bytes.encode(auth.clientDataJSON)
  if (bytes === null || bytes.length > maxClientData)
    return `clientDataJSON: expected at most ${maxClientData} bytes`
  const challenge = Base64.encodeUrl(signingHash)
  if (
    !isAt(bytes, auth.typeIndex, `"type":"webauthn.get"`) ||
    !isAt(bytes, auth.challengeIndex, `"challenge":"${challenge}"`) ||
    !ClientData.areMembers(bytes, auth.typeIndex, auth.challengeIndex)
  )
    return `clientDataJSON: ${problemOfMembers(auth.clientDataJSON, signingHash, challenge)}`
  const steps = ClientData.steps(bytes, auth.typeIndex, auth.challengeIndex)
  if (steps > maxSteps)
    return `clientDataJSON: expected type and challenge first, as browsers write them, or at most ${maxSteps} steps before them (a character is 1, a string 3, an escape 2), got ${steps}`
  const signature = { r: auth.r, s: auth.s }
  if (!P256.inRanges(signature)) return `signature: ${outOfRange}`
  if (!P256.isLow(signature)) return "signature: s is in the upper half"
  return problemOfFlags(Number.parseInt(auth.authenticatorData.slice(flagsAt, flagsAt + 2), 16))
}

/** Characters of the other side's text that a message repeats. */
const shownLength = 100

const shown = (text: string): string =>
  text.length > shownLength ? JSON.stringify(`${text.slice(0, shownLength)}...`) : JSON.stringify(text)

/** Whether this ASCII text is at this byte. */
const isAt = (bytes: Uint8Array, index: bigint, text: string): boolean =>
  index <= BigInt(bytes.length - text.length) && standsAt(bytes, Number(index), utf8Bytes.encode(text))

/**
 * Demands of wallets on an assertion, except for its key. Type webauthn.get; the challenge is base64url of the signing
 * hash. User present and verified; backed up only if eligible. r and s in their ranges, s low. Both lengths in bounds.
 *
 * @example WebAuthn.check({ ...auth, authenticatorData: Hex.empty }, Salt.hash("alice"))
 * // Result.fail("authenticatorData: expected 37 to 160 bytes, but there are 0")
 */
export const check = (auth: Auth, signingHash: Hex.Bytes32): Result.Result<void, string> => {
  const problem = problemOf(auth, signingHash)
  return problem === null ? Result.void : Result.fail(problem)
}

/** The bytes whose SHA-256 the authenticator has signed: authenticatorData || sha256(clientDataJSON). */
const signedMessage = (auth: Pick<Auth, "authenticatorData" | "clientDataJSON">): Hex.Hex =>
  Hex.concat(auth.authenticatorData, Hex.unsafe32(sha256(clientDataOf(auth))))

/**
 * The position of the key that made the assertion; otherwise null.
 *
 * @example WebAuthn.signedBy(auth, [publicKey])
 * // 0
 */
export const signedBy = (auth: Auth, keys: ReadonlyArray<PublicKey>): number | null =>
  P256.signedBy(keys, signedMessage(auth), auth)
