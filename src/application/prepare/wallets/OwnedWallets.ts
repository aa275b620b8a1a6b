import * as Result from "effect/Result"
import type { WalletConfig } from "../../../domain/wallet/WalletConfig.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import type { Call } from "../Call.js"
import type { Snapshot } from "../Snapshot.js"
import * as Wallets from "./Wallets.js"

/**
 * Reads the configuration of each call's wallet from the snapshot, and the failures of calls whose wallet cannot act. A
 * wrong custody is a 400 for the whole request.
 */
export const find = (
  calls: ReadonlyArray<Pick<Call, "custody" | "index" | "wallet">>,
  { forgeable, wallets }: Pick<Snapshot, "forgeable" | "wallets">
): Result.Result<
  { readonly configs: ReadonlyMap<number, WalletConfig>; readonly failed: Map<number, ElementFailure> },
  Failure
> =>
  Result.gen(function* () {
    const failed = new Map<number, ElementFailure>()
    const configs = new Map<number, WalletConfig>()
    for (const { custody, index, wallet } of calls) {
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
      if (custody !== 0 && custody !== config.custody)
        return yield* Result.fail(Wallets.otherCustody(wallet, config, `operations[${index}]`))
      // Applies to all signers: anyone can spend this wallet's funds.
      if (forgeable && config.passkeys.length > 0)
        failed.set(index, elementFailure("passkeys_forgeable", undefined, { wallet }))
      else configs.set(index, config)
    }
    return { configs, failed }
  })
