import * as Result from "effect/Result"
import type { Address } from "../../../domain/primitives/Address.js"
import type { WalletConfig } from "../../../domain/wallet/WalletConfig.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import { type Failure, invalid } from "../../request/Failure.js"
import type { Snapshot } from "../Snapshot.js"

/** An element that acts for a wallet. */
export interface Acting {
  readonly index: number
  readonly wallet: Address
  /** 0: whatever the wallet's is. */
  readonly walletCustody: number
}

/** Which elements have a wallet that can act, and why the others have none. */
export interface Found {
  /** The configuration of each element's wallet, as the chain says. */
  readonly configs: ReadonlyMap<number, WalletConfig>
  readonly failed: ReadonlyMap<number, ElementFailure>
}

/** The wallets of the elements. A custody that is not the wallet's is a 400 of the whole request. */
export const find = (
  elements: ReadonlyArray<Acting>,
  { forgeable, wallets }: Pick<Snapshot, "forgeable" | "wallets">
): Result.Result<Found, Failure> =>
  Result.gen(function* () {
    const failed = new Map<number, ElementFailure>()
    const configs = new Map<number, WalletConfig>()
    for (const { index, wallet, walletCustody } of elements) {
      const state = wallets.get(wallet)
      if (state === undefined || state._tag === "absent") {
        failed.set(index, elementFailure("wallet_not_deployed", undefined, { wallet }))
        continue
      }
      if (state._tag === "foreign") {
        failed.set(index, elementFailure("wallet_not_supported", undefined, { wallet }))
        continue
      }
      const { config } = state.configuration
      if (walletCustody !== 0 && walletCustody !== config.custody)
        return yield* Result.fail(
          invalid("custody_mismatch", [
            {
              path: `operations[${index}].walletCustody`,
              message: `wallet ${wallet} has custody ${config.custody}; send ${config.custody} or 0`
            }
          ])
        )
      // Whoever signs: what is sent there is no longer the owners' alone to spend.
      if (forgeable && config.passkeys.length > 0)
        failed.set(index, elementFailure("passkeys_forgeable", undefined, { wallet }))
      else configs.set(index, config)
    }
    return { configs, failed }
  })
