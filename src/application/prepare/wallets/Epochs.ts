import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Wallets from "./Wallets.js"

/** Failure of an op for a different configuration of its wallet than the current one. */
export const changeFailure = (named: bigint, current: bigint): ElementFailure =>
  elementFailure(
    "configuration_changed",
    Reasons.text("configuration", { named: named + 1n, current: current + 1n })
  )

/**
 * The failure of an op whose nonce names a replaced configuration; null when it names the current one. The wallet never
 * accepts such an op again, by any signer.
 */
export const failureOf = (
  { nonce }: Pick<UserOperation, "nonce">,
  wallet: Wallets.WalletState | undefined
): ElementFailure | null => {
  const [named, current] = [Nonce.epochOf(nonce), Wallets.epochOf(wallet)]
  return named === current ? null : changeFailure(named, current)
}
