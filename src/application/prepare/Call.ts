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
import * as Wallets from "./wallets/Wallets.js"
import type * as WantedWallets from "./wallets/WantedWallets.js"

/**
 * One element of a request as its body asks for it: a pure function of the body, made again from it whenever the element is
 * prepared, and never stored.
 */
interface Element extends OpRef {
  readonly wallet: Address
  /** What the request says of the wallet's custody; 0: whatever it is. */
  readonly custody: Custody
  /** Null: it may be done at any time. */
  readonly window: Window | null
  /** The element of the request that has to succeed before it; null: none. */
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

/** What a request brings along to prove a wallet's consent. */
export type Evidence =
  /** Nothing: the keys that the request names sign. */
  | { readonly _tag: "keys" }
  | { readonly _tag: "proof"; readonly proof: Hex }
  /** One passkey's assertion, as a browser gave it. */
  | { readonly _tag: "assertion"; readonly auth: Auth }

/** The caller brings the op, which is never changed. */
export interface GivenCall extends Element {
  readonly kind: "given"
  readonly op: UserOperation
  readonly userOpHash: Bytes32
  readonly evidence: Evidence
}

/** A wallet is deployed, or was already. */
export interface CreationCall extends Element {
  readonly kind: "creation"
  /** Null: it is named by its address alone, and has to exist. */
  readonly making: WantedWallets.Making | null
  readonly account: WantedWallets.Resolved
}

/** A transaction of the signer's own. */
export interface DirectCall extends Element {
  readonly kind: "direct"
  readonly to: Address
  /** Wei. */
  readonly value: bigint
  readonly data: Hex
}

/** Transactions of the signer that wait are priced anew; `fillUnknown`: those that the service did not send give way too. */
export interface RepricingCall extends Element {
  readonly kind: "repricing"
  readonly fillUnknown: boolean
}

export type Call = OpCall | GivenCall | CreationCall | DirectCall | RepricingCall

/** Of `/execute` and the endpoints that hand ops out; 400 for a wallet that is named wrongly. */
export const ofOperations = (
  requestId: string,
  calls: ReadonlyArray<EncodedCall>,
  dependencies: Dependencies.Dependencies,
  { connection: { profile }, formula }: Pick<OpContext, "connection" | "formula">
): Effect.Effect<ReadonlyArray<OpCall>, Failure> => {
  // A payout is made by few wallets, whose addresses take hashes.
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

/** What the calls depend on, by index; those that are not among them have nothing. */
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
