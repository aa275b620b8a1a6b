import * as BigInts from "effect/BigInt"
import type { FeePrices } from "./Fees.js"

/** Gas units that a `handleOps` transaction uses and charges its ops, from a simulation. */
export interface BundleGas {
  readonly used: bigint
  /** Sum of the ops' actualGasUsed, which the EntryPoint pays to the beneficiary, each op at its own price. */
  readonly charged: bigint
}

/** Margin that must come back in addition to the transaction's cost, in percent of it. */
export const marginPercent = 1n

/**
 * Whether the ops of a transaction repay its cost and a hundredth more, when none of them pays less for a gas unit than
 * the transaction. It then holds at every base fee, except for layer 1's fee now (`l1Fee`, wei), judged at `gasPrice`.
 */
export const covers = (
  { charged, used }: BundleGas,
  { gasPrice, l1Fee }: { readonly gasPrice: bigint; readonly l1Fee: bigint }
): boolean => charged * gasPrice * 100n >= (used * gasPrice + l1Fee) * (100n + marginPercent)

/** Gas that an op must be charged in addition to its use, so that the margin comes back: from the sum of its limits. */
export const margin = (limits: bigint): bigint => (limits * marginPercent + 99n) / 100n

/** The highest prices, of those offered, at which the transaction never pays more for a gas unit than any of the ops does. */
export const prices = (
  offered: FeePrices,
  ops: ReadonlyArray<Pick<FeePrices, "maxFeePerGas" | "maxPriorityFeePerGas">>
): FeePrices => {
  const leastOf = (price: "maxFeePerGas" | "maxPriorityFeePerGas"): bigint =>
    ops.reduce((least, op) => BigInts.min(least, op[price]), offered[price])
  const maxFeePerGas = leastOf("maxFeePerGas")
  return {
    maxFeePerGas,
    maxPriorityFeePerGas: BigInts.min(leastOf("maxPriorityFeePerGas"), maxFeePerGas),
    legacy: offered.legacy
  }
}
