import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Address } from "../../domain/evm/Address.js"
import { type ElementFailure, elementFailure } from "../engine/Elements.js"
import type { WalletState } from "../engine/Wallets.js"
import * as Wallets from "../engine/Wallets.js"
import { type Failure, invalid } from "../Failure.js"

/** An element that acts for a wallet. */
export interface Acting {
  readonly index: number
  readonly wallet: Address
  readonly walletCustody: number
}

/**
 * Which elements cannot act for their wallets, and why. A custody that is not the wallet's is a 400 of the whole
 * request. `owner` is the signer at hand; null: nobody signs here.
 */
export const refuse = (
  elements: ReadonlyArray<Acting>,
  states: ReadonlyMap<Address, WalletState>,
  owner: Address | null
): Effect.Effect<ReadonlyMap<number, ElementFailure>, Failure> =>
  Effect.gen(function* () {
    const failed = new Map<number, ElementFailure>()
    for (const { index, wallet, walletCustody } of elements) {
      const state = states.get(wallet)
      if (state === undefined || state._tag === "absent") {
        failed.set(index, elementFailure("wallet_not_deployed", undefined, { wallet }))
        continue
      }
      if (state._tag === "foreign") {
        failed.set(index, elementFailure("wallet_not_supported", undefined, { wallet }))
        continue
      }
      const path = `operations[${index}].walletCustody`
      const { custody, owners } = state.configuration.config
      if (walletCustody !== 0 && walletCustody !== custody)
        return yield* Effect.fail(
          invalid("custody_mismatch", [
            { path, message: `wallet ${wallet} has custody ${custody}; send ${custody} or 0` }
          ])
        )
      yield* Either.match(Wallets.availableCustody(custody, path), {
        onLeft: Effect.fail,
        onRight: () => Effect.void
      })
      if (owner !== null && !owners.includes(owner))
        failed.set(index, elementFailure("threshold_not_met", "threshold not met: have 0 of 1", { wallet }))
    }
    return failed
  })
