import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Address from "../../../domain/primitives/Address.js"
import * as InvalidValue from "../../../domain/primitives/InvalidValue.js"
import * as Custody from "../../../domain/wallet/Custody.js"
import * as Passkey from "../../../domain/wallet/Passkey.js"
import type { Salt } from "../../../domain/wallet/Salt.js"
import * as WalletConfig from "../../../domain/wallet/WalletConfig.js"
import { type Detail, type InvalidRequest, invalid, invalidAt } from "../../failures/Failure.js"
import type { SignerRef } from "../../ports/Signers.js"
import { Custody as CustodyField, optional, SaltText } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as Wallets from "./Wallets.js"

export const schema = Schema.Struct({
  salt: optional(SaltText).annotateKey({
    description: "Identifies the wallet. Required if wallet is empty."
  }),
  wallet: optional(Schema.String).annotateKey({
    description:
      "Wallet address. Required if salt is empty: it then names an existing wallet. With a salt it must be the wallet of that salt."
  }),
  walletCustody: CustodyField.annotateKey({
    description:
      "1 ECDSA, 2 ECDSA or passkey, 3 multisig, 4 multisig with passkeys, 5 passkey. 0 stands for the wallet's own where wallet is given, and for the operator's default custody with only a salt."
  }),
  passkeyPubKey: optional(Schema.Array(Schema.String)).annotateKey({
    description:
      "Up to 16 P-256 public keys in base64 or base64url: X||Y, 04||X||Y, compressed, SPKI (getPublicKey() of a browser) or COSE; exactly two entries of 32 bytes are X and Y of one key. Required when custody is 2, 4 or 5; custody 1 and 3 do not take it."
  }),
  signers: optional(Schema.Array(Schema.Union([Schema.String, Settings.SignerRef]))).annotateKey({
    description:
      "Up to 16 ECDSA signers of the wallet: addresses, or signers of this account. Required when custody is 3 or 4; no other custody takes it."
  }),
  threshold: optional(Schema.String).annotateKey({
    description:
      "How many of signers and passkeys together must sign, decimal. Required when custody is 3 or 4; no other custody takes it."
  }),
  legacyWallet: optional(Schema.Boolean, false).annotateKey({
    description:
      "Derives the address from the salt without the custody; needs a salt. Afterwards such a wallet is addressed by wallet."
  })
}).annotate({ identifier: "Account" })
export type Account = typeof schema.Type

/** The account's description of its wallet's validators; null: not given. */
export interface Validators {
  readonly passkeys: ReadonlyArray<WalletConfig.PublicKey> | null
  readonly signers: ReadonlyArray<Address.Address | SignerRef> | null
  readonly threshold: number | null
}

/** An account whose fields are each well-formed. */
export interface Parsed {
  readonly index: number
  /** Its place in the request, empty for the request itself. */
  readonly path: string
  readonly selector: Wallets.Selector
  /** Null: the account gives only the wallet's address. */
  readonly salt: Salt | null
  readonly walletCustody: Custody.Custody
  readonly legacy: boolean
  readonly validators: Validators
}

const uses: Readonly<Record<keyof Validators, (custody: Custody.Custody) => boolean>> = {
  passkeys: Custody.usesPasskeys,
  signers: Custody.usesSigners,
  threshold: Custody.usesSigners
}
const fieldOf = { passkeys: "passkeyPubKey", signers: "signers", threshold: "threshold" } as const
const parts = ["passkeys", "signers", "threshold"] as const

/** 400 for fields that this custody lacks or does not use. */
export const checkUse = (
  given: Readonly<Record<keyof Validators, boolean>>,
  custody: Custody.Stored,
  path: string
): Result.Result<void, InvalidRequest> => {
  const wrong = parts.flatMap((part): ReadonlyArray<Detail> => {
    if (given[part] === uses[part](custody)) return []
    const message = given[part]
      ? `custody ${custody} does not use this field`
      : `is required for custody ${custody}`
    return [{ path: `${path}.${fieldOf[part]}`, message }]
  })
  return wrong.length === 0 ? Result.void : Result.fail(invalid("invalid_request", wrong))
}

/** Check the number before each entry is processed. */
const tooMany = (what: string, count: number): string =>
  `expected 1 to ${WalletConfig.most} ${what}, but there are ${count}`

const passkeysOf = (
  entries: ReadonlyArray<string>,
  path: string
): Result.Result<Validators["passkeys"], InvalidRequest> =>
  entries.length > WalletConfig.most
    ? Result.fail(invalidAt(path, tooMany("passkeys", entries.length)))
    : Result.mapError(Passkey.parse(entries), ({ index, message }) => invalidAt(`${path}[${index}]`, message))

const signersOf = (
  entries: ReadonlyArray<string | SignerRef>,
  path: string
): Result.Result<Validators["signers"], InvalidRequest> =>
  entries.length > WalletConfig.most
    ? Result.fail(invalidAt(path, tooMany("signers", entries.length)))
    : Result.all(
        entries.map((entry, index) =>
          typeof entry === "string"
            ? Result.mapError(Address.from(entry), ({ message }) => invalidAt(`${path}[${index}]`, message))
            : Result.succeed(entry)
        )
      )

const decimal = /^(0|[1-9][0-9]*)$/

const thresholdOf = (text: string, path: string): Result.Result<number, InvalidRequest> =>
  decimal.test(text)
    ? Result.succeed(Number(text))
    : Result.fail(invalidAt(path, `expected a decimal integer in a string, got ${InvalidValue.quote(text)}`))

/** An existing wallet, named without a description of its validators. */
export const ofSelector = (selector: Wallets.Selector): Parsed => ({
  index: 0,
  path: "",
  selector,
  salt: null,
  walletCustody: selector.walletCustody,
  legacy: false,
  validators: { passkeys: null, signers: null, threshold: null }
})

export const parse = (
  account: Account,
  index: number,
  path = `accounts[${index}]`
): Result.Result<Parsed, InvalidRequest> =>
  Result.gen(function* () {
    const { legacyWallet = false, passkeyPubKey, salt = "", signers, threshold, wallet = "" } = account
    const { walletCustody } = account
    if (salt === "" && wallet === "")
      return yield* Result.fail(invalidAt(`${path}.salt`, "salt is required", "salt_required"))
    if (legacyWallet && salt === "")
      return yield* Result.fail(
        invalidAt(`${path}.legacyWallet`, "says how a salt makes the address: leave it out, or send the salt")
      )
    const given = {
      passkeys: passkeyPubKey !== undefined,
      signers: signers !== undefined,
      threshold: threshold !== undefined
    }
    // A deployed wallet needs no description, but a given description is checked.
    const described = salt !== "" || Object.values(given).includes(true)
    if (walletCustody !== 0 && described) yield* checkUse(given, walletCustody, path)
    return {
      index,
      path,
      selector: { salt, wallet, walletCustody, legacyWallet },
      salt: salt === "" ? null : yield* Wallets.saltOf(salt, `${path}.salt`),
      walletCustody,
      legacy: legacyWallet,
      validators: {
        passkeys:
          passkeyPubKey === undefined ? null : yield* passkeysOf(passkeyPubKey, `${path}.passkeyPubKey`),
        signers: signers === undefined ? null : yield* signersOf(signers, `${path}.signers`),
        threshold: threshold === undefined ? null : yield* thresholdOf(threshold, `${path}.threshold`)
      }
    }
  })
