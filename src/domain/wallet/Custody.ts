import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidValue } from "../primitives/InvalidValue.js"

/** The kind of validators of a wallet. 0 means the custody on the chain, or the operator's default; it is never stored. */
export type Custody = 0 | Stored

/** The custody of a wallet, part of its address; it never changes. */
export type Stored = 1 | 2 | 3 | 4 | 5

/**
 * 1: one secp256k1 owner. 2: that owner, or any of the wallet's passkeys. 3: `threshold` of the owners.
 * 4: `threshold` of owners and passkeys together. 5: any of the wallet's passkeys.
 */
export const names = {
  0: "UNSPECIFIED",
  1: "ECDSA",
  2: "ECDSA_PASSKEY",
  3: "MULTISIG",
  4: "MULTISIG_PASSKEY",
  5: "PASSKEY"
} as const satisfies Record<Custody, string>

/** The API's message for a number that is not a custody, or not a custody of the endpoint. */
export const invalid = "invalid wallet custody type"

/**
 * A number to a custody, 0 included.
 *
 * @example Result.getOrThrow(Custody.from(1))
 * // 1
 */
export const from = (value: number): Result.Result<Custody, InvalidValue> =>
  isCustody(value) ? Result.succeed(value) : Result.fail(refused())

/**
 * A number to the custody of a wallet, 1 to 5.
 *
 * @example Result.getOrThrow(Result.flip(Custody.ofWallet(0))).message
 * // "invalid wallet custody type"
 */
export const ofWallet = (value: number): Result.Result<Stored, InvalidValue> =>
  isCustody(value) && value !== 0 ? Result.succeed(value) : Result.fail(refused())

const refused = () => new InvalidValue({ type: "Custody", message: invalid })

const isCustody = (value: number): value is Custody => Number.isInteger(value) && value >= 0 && value <= 5

const message = { message: invalid }

/** Wire codec: an integer from 0 to 5. */
export const schema: Schema.Codec<Custody> = Schema.Literals([0, 1, 2, 3, 4, 5]).annotate({
  ...message,
  identifier: "WalletCustody"
})

/** Wire codec of endpoints that take no unspecified custody: an integer from 1 to 5. */
export const storedSchema: Schema.Codec<Stored> = Schema.Literals([1, 2, 3, 4, 5]).annotate({
  ...message,
  identifier: "StoredWalletCustody"
})

/**
 * Creation names the owners in `signers`, and how many must sign in `threshold`.
 *
 * @example Custody.usesSigners(3)
 * // true
 */
export const usesSigners = (custody: Custody): boolean => custody === 3 || custody === 4

/**
 * Creation names P-256 keys in `passkeyPubKey`.
 *
 * @example Custody.usesPasskeys(3)
 * // false
 */
export const usesPasskeys = (custody: Custody): boolean => custody === 2 || custody === 4 || custody === 5

/**
 * The request's signer becomes the wallet's one ECDSA owner at creation.
 *
 * @example Custody.ownerIsSigner(1)
 * // true
 */
export const ownerIsSigner = (custody: Custody): boolean => custody === 1 || custody === 2
