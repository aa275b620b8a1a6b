import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { Address } from "../../domain/evm/Address.js"
import type * as Hex from "../../domain/evm/Hex.js"
import * as Salt from "../../domain/wallet/Salt.js"
import * as WalletAddress from "../../domain/wallet/WalletAddress.js"
import type { Ground } from "../engine/Preparation.js"
import * as Wallets from "../engine/Wallets.js"
import { type Detail, type Failure, type InvalidRequest, invalid, notAvailable } from "../Failure.js"
import { Custody, optional, SaltText } from "../Fields.js"
import type { NetworkProfile } from "../ports/Networks.js"
import * as Settings from "../Settings.js"

export const Account = Schema.Struct({
  salt: optional(SaltText).annotations({
    description: "Identifies the wallet. Required if wallet is empty."
  }),
  wallet: optional(Schema.String).annotations({ description: "Wallet address. Required if salt is empty." }),
  walletCustody: Custody,
  passkeyPubKey: optional(Schema.Array(Schema.String)).annotations({
    description: "Passkey public keys in base64. Required when custody is 2, 4 or 5."
  }),
  signers: optional(Schema.Array(Schema.Union(Schema.String, Settings.SignerRef))).annotations({
    description: "Signers of the validator. Required when custody is 3 or 4."
  }),
  threshold: optional(Schema.String).annotations({
    description: "Threshold of the validator. Required when custody is 3 or 4."
  }),
  legacyWallet: optional(Schema.Boolean)
}).annotations({ identifier: "Account" })
export type Account = typeof Account.Type

/** A wallet that the request wants. */
export interface Wanted {
  readonly index: number
  readonly salt: Salt.Salt
  readonly wallet: Address
  readonly create2Salt: Hex.Bytes32
}

/** The salt of one account; 400 for what it says wrongly, and for what this version does not offer. */
export const saltOf = (account: Account, index: number): Either.Either<Salt.Salt, InvalidRequest> => {
  const path = `accounts[${index}]`
  const { salt = "", wallet = "" } = account
  if (account.legacyWallet === true) return Either.left(notAvailable("legacyWallet", `${path}.legacyWallet`))
  if (salt === "" && wallet !== "")
    return Either.left(notAvailable("wallet without salt", `${path}.wallet`, "send the salt"))
  if (salt === "")
    return Either.left(
      invalid("invalid_request", [{ path: `${path}.salt`, message: "salt is required" }], "salt is required")
    )
  const available = Wallets.availableCustody(account.walletCustody, `${path}.walletCustody`)
  if (Either.isLeft(available)) return Either.left(available.left)
  const unused: ReadonlyArray<Detail> = (["passkeyPubKey", "signers", "threshold"] as const)
    .filter((name) => account[name] !== undefined)
    .map((name) => ({ path: `${path}.${name}`, message: "custody 1 does not use this field" }))
  return unused.length > 0
    ? Either.left(invalid("invalid_request", unused))
    : Wallets.saltOf(salt, `${path}.salt`)
}

/** A factory deploys the proxies of its own beacon only, and deployments are authorised for the account's own factory. */
export const checkFactory = (
  profile: NetworkProfile,
  settings: Wallets.AddressSettings
): Either.Either<void, InvalidRequest> => {
  if (settings.factory !== undefined && settings.factory !== profile.factory)
    return Either.left(
      invalid("factory_not_allowed", [
        { path: "settings.factory", message: "it is not the factory of this account's network profile" }
      ])
    )
  const wrong: Array<Detail> = []
  const message = "it differs from the network profile's, which the factory deploys"
  if (settings.beaconAdminAddress !== undefined && settings.beaconAdminAddress !== profile.beacon)
    wrong.push({ path: "settings.beaconAdminAddress", message })
  if (
    settings.beaconAdminCreationCode !== undefined &&
    settings.beaconAdminCreationCode.toLowerCase() !== profile.creationCode
  )
    wrong.push({ path: "settings.beaconAdminCreationCode", message })
  return wrong.length > 0 ? Either.left(invalid("invalid_request", wrong)) : Either.void
}

/** Every wallet once: the same address twice would be deployed twice in one bundle. */
const distinct = (wanted: ReadonlyArray<Wanted>): Either.Either<void, InvalidRequest> => {
  const first = new Map<Address, number>()
  for (const { index, wallet } of wanted) {
    const before = first.get(wallet)
    if (before !== undefined)
      return Either.left(
        invalid("invalid_request", [
          { path: `accounts[${index}].salt`, message: `accounts[${before}] names the same wallet` }
        ])
      )
    first.set(wallet, index)
  }
  return Either.void
}

/** The wallets of the accounts, whose salts were read before; no two of them the same. */
export const read = (
  accounts: ReadonlyArray<Account>,
  salts: ReadonlyArray<Salt.Salt>,
  { connection, entryPoint, formula }: Ground
): Either.Either<ReadonlyArray<Wanted>, Failure> =>
  Either.gen(function* () {
    const wallets = yield* Either.all(
      accounts.map((account, index) =>
        Wallets.select(account, formula, connection.profile, `accounts[${index}]`)
      )
    )
    const wanted = salts.map((salt, index) => ({
      index,
      salt,
      wallet: wallets[index] ?? entryPoint,
      create2Salt: WalletAddress.create2Salt(Salt.hash(salt), 1, false)
    }))
    yield* distinct(wanted)
    return wanted
  })
