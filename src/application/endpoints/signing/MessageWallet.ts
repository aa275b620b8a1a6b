import * as Effect from "effect/Effect"
import * as Address from "../../../domain/primitives/Address.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import * as NestedMessage from "../../../domain/signature/NestedMessage.js"
import * as Custody from "../../../domain/wallet/Custody.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import * as P256Precompile from "../../chain/P256Precompile.js"
import * as Reads from "../../chain/Reads.js"
import { invalidAt, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import type { Signer } from "../../ports/Signers.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import * as Account from "../../prepare/wallets/Account.js"
import * as WalletSpecs from "../../prepare/wallets/WalletSpecs.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import type { Caller } from "../../request/Caller.js"
import type * as Settings from "../../request/Settings.js"

/** The wallet that a message is signed as: its validators and its domain, deployed or as it would be deployed. */

/** The wallet as a request names it: by address or salt with the custody, or by a description as for `/create`. */
export interface Named {
  readonly wallet?: string
  readonly salt?: string
  readonly walletCustody?: Custody.Custody
  readonly account?: Account.Account
  readonly settings: Settings.ForMessages
}

const parsed = ({ account, salt = "", wallet = "", walletCustody }: Named) => {
  if (account === undefined && walletCustody !== undefined)
    return Effect.succeed(Account.ofSelector({ salt, wallet, walletCustody }))
  return account === undefined || walletCustody !== undefined || salt !== "" || wallet !== ""
    ? invalidAt("walletCustody", "expected either walletCustody with wallet or salt, or account")
    : Effect.fromResult(Account.parse(account, 0, "account"))
}

const implementationCall = Keccak.selector("implementation()")

/** The implementation that the beacon names now. */
const implementationOf = Effect.fnUntraced(function* (
  { chain }: Connection.Connection,
  beacon: Address.Address
) {
  const facts = yield* ChainFacts
  const address = yield* Reads.addressAt(chain, beacon, implementationCall)
  const code = address === null ? null : yield* facts.code(chain, address)
  return address === null || code === null ? null : { address, codeHash: Keccak.hash(code) }
})

/** Reads the named wallet from the chain. `making`: its deployment, null when it is deployed. Fails for a wallet that cannot sign messages. */
export const read = Effect.fnUntraced(function* (
  caller: Caller,
  request: Named,
  [signer]: ReadonlyArray<Signer>,
  connection: Connection.Connection
) {
  const { settings } = request
  const { chain, profile, trust } = connection
  const account = yield* parsed(request)
  const path = request.account === undefined ? "wallet" : "account"
  const foreign = Wallets.foreignFactory(profile, settings)
  if (foreign !== null) return yield* foreign
  if (request.account !== undefined) yield* Effect.fromResult(WalletSpecs.checkFactory(profile, settings))
  const formula = yield* Effect.fromResult(Wallets.formula(profile, settings))
  const custody = account.walletCustody === 0 ? profile.defaultCustody : account.walletCustody
  if (signer === undefined && account.salt !== null && Custody.ownerIsSigner(custody))
    return yield* invalidAt(
      "settings.signer",
      `is required: it is the owner of a wallet of custody ${custody}`
    )
  const owner = signer?.address ?? Address.zero
  const resolved = yield* WalletSpecs.resolve(caller, [account])
  const [wanted] = yield* WalletSpecs.read(resolved, owner, { connection, formula })
  if (wanted === undefined) return yield* Effect.die(new Error("one account is one wallet"))
  const { making, wallet } = wanted
  const [states, implementation, forgeable, answer] = yield* Effect.mapError(
    Effect.all(
      [
        Wallets.read(yield* ChainFacts, chain, formula.initCode, [wallet]),
        implementationOf(connection, formula.beacon),
        P256Precompile.believesForgeries(chain),
        chain.call({ to: wallet, data: NestedMessage.domainCall })
      ],
      { concurrency: "unbounded" }
    ),
    Connection.refusal(trust)
  )
  yield* Snapshot.checkImplementation(connection, implementation, settings.validator)
  const state = states.get(wallet)
  const deployed = state?._tag === "deployed" ? state.configuration.config : null
  const config = deployed ?? making?.config
  if (state?._tag !== "foreign" && config === undefined)
    return yield* unprocessable("wallet_not_deployed", [
      { path, message: Reasons.text("describeWallet"), wallet }
    ])
  const { chainId } = profile
  const domain =
    deployed === null
      ? NestedMessage.first(chainId, wallet)
      : answer.success
        ? NestedMessage.readDomain(answer.data, { chainId, wallet })
        : null
  if (state?._tag === "foreign" || config === undefined || domain === null)
    return yield* unprocessable("wallet_not_supported", [
      { path, message: Reasons.ofCode("wallet_not_supported"), wallet }
    ])
  if (deployed !== null && !(yield* Effect.fromResult(WalletSpecs.isAsWanted(wanted, owner, deployed))))
    return yield* unprocessable("account_exists", [
      { path, message: Reasons.text("otherConfiguration"), wallet }
    ])
  if (forgeable && config.passkeys.length > 0) return yield* unprocessable("passkeys_forgeable")
  return {
    wallet,
    config,
    domain,
    making: deployed === null && making !== null ? { ...making, factory: formula.factory } : null
  }
})
