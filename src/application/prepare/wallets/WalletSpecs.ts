import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Custody from "../../../domain/wallet/Custody.js"
import * as Salt from "../../../domain/wallet/Salt.js"
import * as WalletAddress from "../../../domain/wallet/WalletAddress.js"
import * as WalletConfig from "../../../domain/wallet/WalletConfig.js"
import { type Detail, type Failure, type InvalidRequest, invalid, invalidAt } from "../../failures/Failure.js"
import * as Keys from "../../keys/Keys.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import type { Signers } from "../../ports/Signers.js"
import type { Caller } from "../../request/Caller.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import type { OpContext } from "../OpContext.js"
import * as Account from "./Account.js"
import * as Wallets from "./Wallets.js"

/** Validators of an account's wallet, with every key resolved; null: not given. */
interface Validators extends Omit<Account.Validators, "signers"> {
  readonly signers: ReadonlyArray<Address> | null
}

/** An account whose signers are addresses. */
export interface Resolved extends Omit<Account.Parsed, "validators"> {
  readonly validators: Validators
}

/** Resolves the accounts' signers to addresses; looks up each key once. */
export const resolve = (
  caller: Caller,
  accounts: ReadonlyArray<Account.Parsed>
): Effect.Effect<ReadonlyArray<Resolved>, Failure, Signers> =>
  Effect.gen(function* () {
    const known = new Map<string, Address>()
    const resolved: Array<Resolved> = []
    for (const account of accounts) {
      const { passkeys, signers, threshold } = account.validators
      const addresses: Array<Address> = []
      for (const [index, signer] of (signers ?? []).entries()) {
        if (typeof signer === "string") {
          addresses.push(signer)
          continue
        }
        const name = JSON.stringify([signer.clientId, signer.versionId, signer.assetId])
        const path = `${account.path}.signers[${index}]`
        const address = known.get(name) ?? (yield* Keys.resolve(caller, signer, path)).address
        known.set(name, address)
        addresses.push(address)
      }
      resolved.push({
        ...account,
        validators: { passkeys, threshold, signers: signers === null ? null : addresses }
      })
    }
    return resolved
  })

export interface Making {
  readonly saltHash: Hex.Bytes32
  readonly custody: Custody.Stored
  readonly legacy: boolean
  readonly config: WalletConfig.WalletConfig
  readonly configHash: Hex.Bytes32
  readonly create2Salt: Hex.Bytes32
}

export interface WalletSpec {
  readonly index: number
  readonly account: Resolved
  readonly wallet: Address
  /** Null: the account gives only the wallet's address, so the wallet must exist. */
  readonly making: Making | null
}

/** A factory deploys only proxies of its beacon; only the account's own factory is authorised. */
export const checkFactory = (
  profile: NetworkProfile,
  settings: Wallets.AddressSettings
): Result.Result<void, InvalidRequest> => {
  const foreign = Wallets.foreignFactory(profile, settings)
  if (foreign !== null) return Result.fail(foreign)
  const wrong: Array<Detail> = []
  const message = "it differs from the network profile's, which the factory deploys"
  if (settings.beaconAdminAddress !== undefined && settings.beaconAdminAddress !== profile.beacon)
    wrong.push({ path: "settings.beaconAdminAddress", message })
  if (
    settings.beaconAdminCreationCode !== undefined &&
    settings.beaconAdminCreationCode.toLowerCase() !== profile.creationCode
  )
    wrong.push({ path: "settings.beaconAdminCreationCode", message })
  return wrong.length > 0 ? Result.fail(invalid("invalid_request", wrong)) : Result.void
}

/** The configuration that an account describes for this custody. `owner` is the request's signer. */
const configOf = (
  { path, validators }: Resolved,
  custody: Custody.Stored,
  owner: Address
): Result.Result<WalletConfig.WalletConfig, InvalidRequest> =>
  Result.gen(function* () {
    const { passkeys, signers, threshold } = validators
    const given = { passkeys: passkeys !== null, signers: signers !== null, threshold: threshold !== null }
    yield* Account.checkUse(given, custody, path)
    return yield* Result.mapError(
      WalletConfig.make({
        custody,
        owners: Custody.ownerIsSigner(custody) ? [owner] : (signers ?? []),
        passkeys: passkeys ?? [],
        threshold: threshold ?? 1
      }),
      ({ field, message }) => invalidAt(`${path}.${field}`, message)
    )
  })

/** Rejects duplicates: a repeated address would be deployed twice in one bundle. */
const distinct = (wanted: ReadonlyArray<WalletSpec>): Result.Result<void, InvalidRequest> => {
  const first = new Map<Address, number>()
  for (const { index, making, wallet } of wanted) {
    const before = first.get(wallet)
    const path = `accounts[${index}].${making === null ? "wallet" : "salt"}`
    if (before !== undefined) return Result.fail(invalidAt(path, `accounts[${before}] names the same wallet`))
    first.set(wallet, index)
  }
  return Result.void
}

/** The distinct wallets of the accounts. `owner` is the request's signer. */
export const read = (
  accounts: ReadonlyArray<Resolved>,
  owner: Address,
  { connection: { profile }, formula }: Pick<OpContext, "connection" | "formula">
): Effect.Effect<ReadonlyArray<WalletSpec>, Failure> =>
  Effect.gen(function* () {
    const wanted: Array<WalletSpec> = []
    for (const account of accounts) {
      yield* EventLoop.breathe
      const { index, legacy, path, salt, selector } = account
      const wallet = yield* Effect.fromResult(Wallets.select(selector, formula, profile, path))
      if (salt === null) {
        wanted.push({ index, account, wallet, making: null })
        continue
      }
      const custody = Wallets.custodyOf(salt, selector, wallet, formula, profile)
      const config = yield* Effect.fromResult(configOf(account, custody, owner))
      const saltHash = Salt.hash(salt)
      const making = {
        saltHash,
        custody,
        legacy,
        config,
        configHash: WalletConfig.configHash(config),
        create2Salt: WalletAddress.create2Salt(saltHash, custody, legacy)
      }
      wanted.push({ index, account, wallet, making })
    }
    yield* Effect.fromResult(distinct(wanted))
    return wanted
  })

/**
 * Whether a deployed wallet matches the account. A wallet given only by its address matches, unless its validators are
 * described too.
 */
export const isAsWanted = (
  { account, making, wallet }: WalletSpec,
  owner: Address,
  config: WalletConfig.WalletConfig
): Result.Result<boolean, InvalidRequest> => {
  const configHash = WalletConfig.configHash(config)
  if (making !== null) return Result.succeed(making.configHash === configHash)
  const { path, validators, walletCustody } = account
  if (walletCustody !== 0 && walletCustody !== config.custody)
    return Result.fail(Wallets.otherCustody(wallet, config, path))
  if (Object.values(validators).every((part) => part === null)) return Result.succeed(true)
  return Result.map(
    configOf(account, config.custody, owner),
    (described) => WalletConfig.configHash(described) === configHash
  )
}
