import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Address from "../../domain/primitives/Address.js"
import type { Hex } from "../../domain/primitives/Hex.js"
import type { Custody, Stored } from "../../domain/wallet/Custody.js"
import * as Salt from "../../domain/wallet/Salt.js"
import * as WalletAddress from "../../domain/wallet/WalletAddress.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import * as WalletConfig from "../../domain/wallet/WalletConfig.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import type { ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import { type Detail, type Failure, type InvalidRequest, invalid, unprocessable } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"
import * as Together from "../runtime/Together.js"

/** The parts of `settings` that make wallet addresses. */
export interface AddressSettings {
  readonly factory?: Address.Address
  readonly beaconAdminAddress?: Address.Address
  readonly beaconAdminCreationCode?: string
}

/** Everything that the address formula needs beside salt and custody. */
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
): Either.Either<WalletAddress.CreationCode, ReturnType<typeof unprocessable>> =>
  Either.mapLeft(WalletAddress.creationCode(text), ({ message }) =>
    unprocessable("internal_application_error", [
      {
        path: "settings.beaconAdminCreationCode",
        message: Reasons.text("creationCode", { problem: message })
      }
    ])
  )

/** The address formula of a request; what its settings leave out comes from the network profile. */
export const formula = (
  profile: NetworkProfile,
  settings: AddressSettings
): Either.Either<Formula, Failure> =>
  Either.gen(function* () {
    const factory = settings.factory ?? profile.factory
    const beacon = settings.beaconAdminAddress ?? profile.beacon
    const code = settings.beaconAdminCreationCode ?? profile.creationCode
    if (factory === null || beacon === null || code === null)
      return yield* Either.left(
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

/** What a request says of a wallet. */
export interface Selector {
  readonly wallet?: string
  readonly salt?: string
  readonly walletCustody: Custody
  /** The salt alone makes the address. */
  readonly legacyWallet?: boolean
}

/** The address that a selector names. `path` is the element's. An empty text counts as absent. */
export const select = (
  selector: Selector,
  formula: Formula,
  profile: NetworkProfile,
  path: string
): Either.Either<Address.Address, Failure> =>
  Either.gen(function* () {
    const { salt = "", wallet = "" } = selector
    if (salt === "" && wallet === "")
      return yield* Either.left(
        invalid("invalid_request", [{ path: `${path}.salt`, message: "either salt or wallet is required" }])
      )
    const named =
      wallet === ""
        ? null
        : yield* Either.mapLeft(Address.from(wallet), ({ message }) =>
            invalid("invalid_request", [{ path: `${path}.wallet`, message }])
          )
    if (salt === "") return named ?? Address.zero
    const text = yield* saltOf(salt, `${path}.salt`)
    const { legacyWallet = false, walletCustody } = selector
    const custody = walletCustody === 0 ? profile.defaultCustody : walletCustody
    const predicted = formula.predict(text, custody, legacyWallet)
    if (named !== null && named !== predicted)
      return yield* Either.left(
        invalid("invalid_request", [
          { path: `${path}.wallet`, message: `salt and walletCustody name another wallet: ${predicted}` }
        ])
      )
    return predicted
  })

/** 400 `invalid salt format`. */
export const saltOf = (text: string, path: string): Either.Either<Salt.Salt, InvalidRequest> =>
  Either.mapLeft(Salt.from(text), () =>
    invalid("invalid_salt_format", [
      { path, message: "expected 1 to 256 bytes of NFC text without control characters or outer white space" }
    ])
  )

/** What stands at a wallet's address. */
export type WalletState =
  | { readonly _tag: "absent" }
  /** Code that is no proxy of the beacon, or whose implementation is no wallet. */
  | { readonly _tag: "foreign" }
  | { readonly _tag: "deployed"; readonly configuration: WalletConfig.Configuration }

/** The epoch that nonces of the wallet's ops name; 0 where nothing is deployed. */
export const epochOf = (state: WalletState | undefined): bigint =>
  state?._tag === "deployed" ? WalletConfig.epochOf(state.configuration) : 0n

/** Reads what stands at each address. `initCode` is that of the beacon's proxies. */
export const read = (
  facts: ChainFacts,
  chain: ChainClient,
  initCode: Hex,
  wallets: ReadonlyArray<Address.Address>
): Effect.Effect<ReadonlyMap<Address.Address, WalletState>, ChainRpcError> =>
  Effect.gen(function* () {
    const [expected, states] = yield* Together.all([
      facts.deployedCode(chain, initCode),
      Together.forEach(wallets, (wallet) =>
        Together.all([chain.code(wallet), chain.call({ to: wallet, data: WalletCalls.configuration })])
      )
    ])
    const found = new Map<Address.Address, WalletState>()
    for (const [index, wallet] of wallets.entries()) {
      const state = states[index]
      if (state === undefined) continue
      const [code, answer] = state
      const configuration = WalletConfig.decode(answer.data)
      if (code === "0x") found.set(wallet, { _tag: "absent" })
      else if (code === expected && answer.success && Either.isRight(configuration))
        found.set(wallet, { _tag: "deployed", configuration: configuration.right })
      else found.set(wallet, { _tag: "foreign" })
    }
    return found
  })
