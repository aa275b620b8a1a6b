import * as BigInts from "effect/BigInt"
import type { FeePrices } from "./Fees.js"

/** What a `handleOps` transaction uses and what its ops are charged for, gas units, as a simulation tells. */
export interface BundleGas {
  readonly used: bigint
  /** Sum of the ops' actualGasUsed: what the EntryPoint pays the beneficiary for, each op at its own price. */
  readonly charged: bigint
}

/** Of the transaction's cost, percent: what has to come back beside it. */
export const marginPercent = 1n

/**
 * Whether the ops of a transaction give its cost back, and a hundredth more, when none of them pays less for a gas unit than
 * the transaction. Then it holds at every base fee, what layer 1 asks now (`l1Fee`, wei) apart, which is judged at `gasPrice`.
 */
export const covers = (
  { charged, used }: BundleGas,
  { gasPrice, l1Fee }: { readonly gasPrice: bigint; readonly l1Fee: bigint }
): boolean => charged * gasPrice * 100n >= (used * gasPrice + l1Fee) * (100n + marginPercent)

/** Gas that an op has to be charged beside what it uses, so that the margin comes back: of its limits together. */
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
