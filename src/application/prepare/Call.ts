import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Dependencies from "../../domain/erc4337/Dependencies.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import type { Auth } from "../../domain/signature/WebAuthn.js"
import type { Custody } from "../../domain/wallet/Custody.js"
import type { Failure } from "../failures/Failure.js"
import type { OpRef } from "../ports/journal/OpRef.js"
import type { Window } from "../ports/journal/Records.js"
import * as EventLoop from "../runtime/EventLoop.js"
import type { EncodedCall } from "./EncodeCall.js"
import type { OpContext } from "./OpContext.js"
import type * as WalletSpecs from "./wallets/WalletSpecs.js"
import * as Wallets from "./wallets/Wallets.js"

/**
 * One element of a request. It is a pure function of the request's body, computed whenever the element is prepared, and
 * never stored.
 */
interface Element extends OpRef {
  readonly wallet: Address
  /** The custody that the request claims for the wallet; 0: any. */
  readonly custody: Custody
  /** Null: no time limits. */
  readonly window: Window | null
  /** The element of the request that must succeed before it; null: none. */
  readonly dependsOn: number | null
}

/** The service encodes, prices and signs the op. */
export interface OpCall extends Element {
  readonly kind: "op"
  readonly to: Address
  /** Wei. */
  readonly value: bigint
  readonly data: Hex
}

/** The request's evidence of a wallet's consent. */
export type Evidence =
  /** None: the keys that the request names sign. */
  | { readonly _tag: "keys" }
  | { readonly _tag: "proof"; readonly proof: Hex }
  /** One passkey's assertion, as a browser returned it. */
  | { readonly _tag: "assertion"; readonly auth: Auth }

/** The caller brings the op, which the service never changes. */
export interface GivenCall extends Element {
  readonly kind: "given"
  readonly op: UserOperation
  readonly userOpHash: Bytes32
  readonly evidence: Evidence
}

/** Deploys a wallet, unless it is deployed. */
export interface CreationCall extends Element {
  readonly kind: "creation"
  /** Null: the request gives only the wallet's address, so the wallet must exist. */
  readonly making: WalletSpecs.Making | null
  readonly account: WalletSpecs.Resolved
}

export interface DirectCall extends Element {
  readonly kind: "direct"
  readonly to: Address
  /** Wei. */
  readonly value: bigint
  readonly data: Hex
  /** Highest gas limit; absent: the chain's. */
  readonly gas?: bigint
}

/** Reprices the signer's pending transactions; with `fillUnknown` also those that the service did not send. */
export interface RepricingCall extends Element {
  readonly kind: "repricing"
  readonly fillUnknown: boolean
}

export type Call = OpCall | GivenCall | CreationCall | DirectCall | RepricingCall

/** Calls of `/execute` and of the endpoints that return unsigned ops; 400 for a wrong wallet selector. */
export const ofOperations = (
  requestId: string,
  calls: ReadonlyArray<EncodedCall>,
  dependencies: Dependencies.Dependencies,
  { connection: { profile }, formula }: Pick<OpContext, "connection" | "formula">
): Effect.Effect<ReadonlyArray<OpCall>, Failure> => {
  // A payout comes from few wallets, and computing an address takes several hashes.
  const wallets = new Map<string, Address>()
  const walletOf = ({ index, selector }: EncodedCall): Result.Result<Address, Failure> => {
    const { legacyWallet = false, salt = "", wallet = "", walletCustody } = selector
    const name = JSON.stringify([legacyWallet, salt, wallet, walletCustody])
    const known = wallets.get(name)
    if (known !== undefined) return Result.succeed(known)
    return Result.map(Wallets.select(selector, formula, profile, `operations[${index}]`), (address) => {
      wallets.set(name, address)
      return address
    })
  }
  const made = EventLoop.map(calls, (each) =>
    Result.map(
      walletOf(each),
      (wallet): OpCall => ({
        requestId,
        index: each.index,
        kind: "op",
        wallet,
        custody: each.selector.walletCustody,
        to: each.call.target,
        value: each.call.value,
        data: each.call.data,
        window: each.window,
        dependsOn: dependencies[each.index] ?? null
      })
    )
  )
  return Effect.flatMap(made, (all) => Effect.fromResult(Result.all(all)))
}

/** Dependencies of the calls, by index; null for absent indexes. */
export const dependencies = (
  calls: ReadonlyArray<Pick<Element, "dependsOn" | "index">>
): Dependencies.Dependencies => {
  const on: Array<number | null> = []
  for (const { dependsOn, index } of calls) {
    while (on.length <= index) on.push(null)
    on[index] = dependsOn
  }
  return on
}
