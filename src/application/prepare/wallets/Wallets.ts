import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Address from "../../../domain/primitives/Address.js"
import type { Hex } from "../../../domain/primitives/Hex.js"
import type { Custody, Stored } from "../../../domain/wallet/Custody.js"
import * as Salt from "../../../domain/wallet/Salt.js"
import * as WalletAddress from "../../../domain/wallet/WalletAddress.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import * as WalletConfig from "../../../domain/wallet/WalletConfig.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import {
  type Detail,
  type Failure,
  type InvalidRequest,
  invalid,
  invalidAt,
  unprocessable
} from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import type { CallResult, ChainClient, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"

/**
 * Computes the addresses of wallets by a request's settings, and reads their states from the chain.
 *
 * Gotchas: a wallet's code never changes, but it may disappear with its block: known code is only a guess until the
 * wallet answers.
 */

/** The parts of `settings` that determine wallet addresses. */
export interface AddressSettings {
  readonly factory?: Address.Address
  readonly beaconAdminAddress?: Address.Address
  readonly beaconAdminCreationCode?: string
}

/** The address formula's inputs, except salt and custody. */
export interface Formula {
  readonly factory: Address.Address
  readonly beacon: Address.Address
  /** Creation code with the constructor's arguments. */
  readonly initCode: Hex
  readonly predict: (salt: Salt.Salt, custody: Stored, legacy: boolean) => Address.Address
}

const missing = (name: string): Detail => ({
  path: `settings.${name}`,
  message: "is required: the network profile has none for this chain"
})

/** 422 when the creation code cannot be used. */
export const creationCode = (
  text: string
): Result.Result<WalletAddress.CreationCode, ReturnType<typeof unprocessable>> =>
  Result.mapError(WalletAddress.creationCode(text), ({ message }) =>
    unprocessable("internal_application_error", [
      {
        path: "settings.beaconAdminCreationCode",
        message: Reasons.text("creationCode", { problem: message })
      }
    ])
  )

/** The refusal of a foreign factory: the service does no work for its wallets. */
export const foreignFactory = (
  profile: NetworkProfile,
  settings: AddressSettings
): ReturnType<typeof invalid> | null =>
  settings.factory === undefined || settings.factory === profile.factory
    ? null
    : invalidAt(
        "settings.factory",
        "it is not the factory of this account's network profile",
        "factory_not_allowed"
      )

/** The address formula of a request; the network profile completes its settings. */
export const formula = (
  profile: NetworkProfile,
  settings: AddressSettings
): Result.Result<Formula, Failure> =>
  Result.gen(function* () {
    const factory = settings.factory ?? profile.factory
    const beacon = settings.beaconAdminAddress ?? profile.beacon
    const code = settings.beaconAdminCreationCode ?? profile.creationCode
    if (factory === null || beacon === null || code === null)
      return yield* Result.fail(
        invalid("invalid_request", [
          ...(factory === null ? [missing("factory")] : []),
          ...(beacon === null ? [missing("beaconAdminAddress")] : []),
          ...(code === null ? [missing("beaconAdminCreationCode")] : [])
        ])
      )
    const usable = yield* creationCode(code)
    const initCodeHash = WalletAddress.initCodeHash(usable, beacon)
    return {
      factory,
      beacon,
      initCode: WalletAddress.initCode(usable, beacon),
      predict: WalletAddress.predictor({ factory, initCodeHash })
    }
  })

export interface Selector {
  readonly wallet?: string
  readonly salt?: string
  readonly walletCustody: Custody
  /** Only the salt determines the address. */
  readonly legacyWallet?: boolean
}

export const custodies: ReadonlyArray<Stored> = [1, 2, 3, 4, 5]

/**
 * The custody of a salt's wallet. Custody 0 with a wallet address means the custody that gives this address. Without an
 * address, and for a legacy wallet, it means the operator's default.
 */
export const custodyOf = (
  salt: Salt.Salt,
  { legacyWallet = false, walletCustody }: Selector,
  wallet: Address.Address | null,
  { predict }: Formula,
  { defaultCustody }: NetworkProfile
): Stored => {
  if (walletCustody !== 0) return walletCustody
  const own =
    wallet === null || legacyWallet
      ? undefined
      : custodies.find((custody) => predict(salt, custody, false) === wallet)
  return own ?? defaultCustody
}

/** A field of an element; `path` is empty for the request itself. */
const at = (path: string, field: string): string => (path === "" ? field : `${path}.${field}`)

/** The address that a selector names. `path` is the element's, empty for the request itself. An empty string counts as absent. */
export const select = (
  selector: Selector,
  formula: Formula,
  profile: NetworkProfile,
  path: string
): Result.Result<Address.Address, Failure> =>
  Result.gen(function* () {
    const { salt = "", wallet = "" } = selector
    if (salt === "" && wallet === "")
      return yield* Result.fail(invalidAt(at(path, "salt"), "either salt or wallet is required"))
    const named =
      wallet === ""
        ? null
        : yield* Result.mapError(Address.from(wallet), ({ message }) =>
            invalidAt(at(path, "wallet"), message)
          )
    if (salt === "") return named ?? Address.zero
    const text = yield* saltOf(salt, at(path, "salt"))
    const custody = custodyOf(text, selector, named, formula, profile)
    const predicted = formula.predict(text, custody, selector.legacyWallet === true)
    if (named !== null && named !== predicted)
      return yield* Result.fail(
        invalidAt(at(path, "wallet"), `salt and walletCustody name another wallet: ${predicted}`)
      )
    return predicted
  })

/** 400 `invalid salt format`. */
export const saltOf = (text: string, path: string): Result.Result<Salt.Salt, InvalidRequest> =>
  Result.mapError(Salt.from(text), () =>
    invalidAt(
      path,
      "expected 1 to 256 bytes of NFC text without control characters or outer white space",
      "invalid_salt_format"
    )
  )

/** 400 for a claimed custody that the wallet does not have. */
export const otherCustody = (
  wallet: Address.Address,
  { custody }: WalletConfig.WalletConfig,
  path: string
): InvalidRequest =>
  invalidAt(
    at(path, "walletCustody"),
    `wallet ${wallet} has custody ${custody}; send ${custody} or 0`,
    "custody_mismatch"
  )

export type WalletState =
  | { readonly _tag: "absent" }
  /** Code that is not a proxy of the beacon, or whose implementation is not a wallet. */
  | { readonly _tag: "foreign" }
  | { readonly _tag: "deployed"; readonly configuration: WalletConfig.Configuration }

/** Whether the wallet has validators whose signatures the chain verifies as P-256. */
export const hasPasskeys = (configuration: WalletConfig.Configuration | null): boolean =>
  configuration !== null && configuration.config.passkeys.length > 0

/** The epoch in the nonces of the wallet's ops; 0 before deployment. */
export const epochOf = (state: WalletState | undefined): bigint =>
  state?._tag === "deployed" ? WalletConfig.epochOf(state.configuration) : 0n

/**
 * Null: read again. Either the code was known and not read, but the answer does not fit it, or there is code and the
 * configuration was not queried.
 */
const stateOf = (code: Hex | null, answer: CallResult | null, expected: Hex | null): WalletState | null => {
  if (code === "0x") return { _tag: "absent" }
  if (answer === null) return null
  const configuration = WalletConfig.decode(answer.data)
  if ((code === null || code === expected) && answer.success && Result.isSuccess(configuration))
    return { _tag: "deployed", configuration: configuration.success }
  return code === null ? null : { _tag: "foreign" }
}

/**
 * Reads the state of each address. `initCode` is that of the beacon's proxies. A proxy's code never changes, so known
 * code is not read again, unless it has disappeared with its block. `wanted`: wallets to deploy, whose configuration is
 * not queried at first.
 */
export const read = (
  facts: ChainFacts,
  chain: ChainClient,
  initCode: Hex,
  wallets: ReadonlyArray<Address.Address>,
  {
    known = (wallet) => facts.wallet(chain, wallet, initCode) !== null,
    wanted
  }: {
    readonly known?: (wallet: Address.Address) => boolean
    readonly wanted?: ReadonlySet<Address.Address>
  } = {}
): Effect.Effect<ReadonlyMap<Address.Address, WalletState>, ChainRpcError> =>
  Effect.gen(function* () {
    const readWallet = (wallet: Address.Address) =>
      Effect.all(
        [
          known(wallet) ? Effect.succeed(null) : chain.code(wallet),
          wanted?.has(wallet) === true && !known(wallet)
            ? Effect.succeed(null)
            : chain.call({ to: wallet, data: WalletCalls.configuration })
        ],
        { concurrency: "unbounded" }
      )
    const [expected, answers] = yield* Effect.all(
      [
        wallets.every(known) ? Effect.succeed(null) : facts.deployedCode(chain, initCode),
        Effect.forEach(wallets, readWallet, { concurrency: "unbounded" })
      ],
      { concurrency: "unbounded" }
    )
    const found = new Map<Address.Address, WalletState>()
    const again: Array<Address.Address> = []
    for (const [index, wallet] of wallets.entries()) {
      const own = answers[index]
      if (own === undefined) continue
      const state = stateOf(...own, expected)
      if (state === null) again.push(wallet)
      else found.set(wallet, state)
      if (state?._tag === "deployed") facts.noteWallet(chain, wallet, initCode, state.configuration)
    }
    if (again.length === 0) return found
    const seen = yield* read(facts, chain, initCode, again, { known: () => false })
    return new Map([...found, ...seen])
  })

/** The last known state of these addresses; null: some are not known as wallets. */
export const lastSeen = (
  facts: ChainFacts,
  chain: ChainClient,
  initCode: Hex,
  wallets: ReadonlyArray<Address.Address>
): ReadonlyMap<Address.Address, WalletState> | null => {
  const found = new Map<Address.Address, WalletState>()
  for (const wallet of wallets) {
    const configuration = facts.wallet(chain, wallet, initCode)
    if (configuration === null) return null
    found.set(wallet, { _tag: "deployed", configuration })
  }
  return found
}
