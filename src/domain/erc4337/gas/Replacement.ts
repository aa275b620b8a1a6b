import * as BigInts from "effect/BigInt"
import * as Result from "effect/Result"
import { AboveCap, type FeePrices } from "./Fees.js"

/** ceil(x * 1.1), at least one more: nodes replace a transaction only when both prices rise by a tenth. */
const raised = (price: bigint): bigint => BigInts.max((price * 11n + 9n) / 10n, price + 1n)

/**
 * Prices of a transaction that replaces another with the same nonce: both at least a tenth above the highest ever signed
 * for that nonce, and not below the chain's current prices. `Failure` when the caps do not allow that.
 */
export const prices = (options: {
  /** The highest of each price signed for the nonce, wei per gas unit. */
  readonly highest: Omit<FeePrices, "legacy">
  /** A current quote; null when none is available. */
  readonly quote: FeePrices | null
  /** The transaction is of type 0, and stays so: one price, in both fields. */
  readonly legacy: boolean
  /** Absolute caps of the operator, wei per gas unit. */
  readonly caps: { readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
}): Result.Result<FeePrices, AboveCap> => {
  const { caps, highest, legacy, quote } = options
  const tip = BigInts.max(raised(highest.maxPriorityFeePerGas), quote?.maxPriorityFeePerGas ?? 0n)
  const fee = BigInts.max(raised(highest.maxFeePerGas), quote?.maxFeePerGas ?? 0n)
  const maxFeePerGas = BigInts.max(fee, tip)
  if (maxFeePerGas > caps.maxFeePerGas)
    return Result.fail(new AboveCap({ needed: maxFeePerGas, cap: caps.maxFeePerGas }))
  if (legacy) return Result.succeed({ maxFeePerGas, maxPriorityFeePerGas: maxFeePerGas, legacy })
  if (tip > caps.maxPriorityFeePerGas)
    return Result.fail(new AboveCap({ needed: tip, cap: caps.maxPriorityFeePerGas }))
  return Result.succeed({ maxFeePerGas, maxPriorityFeePerGas: tip, legacy })
}
