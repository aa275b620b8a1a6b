import * as BigInts from "effect/BigInt"
import * as Either from "effect/Either"
import { AboveCap, type FeePrices } from "./Fees.js"

/** ceil(x * 1.1), at least one more: nodes replace a transaction only when both prices rise by a tenth. */
const raised = (price: bigint): bigint => BigInts.max((price * 11n + 9n) / 10n, price + 1n)

/**
 * Prices of a transaction that takes the place of one with the same nonce: both at least a tenth above the highest
 * ever signed for that nonce, and not below what the chain asks for now. `Left` when the cap does not allow that.
 */
export const prices = (options: {
  readonly highest: FeePrices
  /** A quote of the moment; null when there is none to be had. */
  readonly quote: FeePrices | null
  /** Absolute caps of the operator, wei per gas unit. */
  readonly caps: FeePrices
}): Either.Either<FeePrices, AboveCap> => {
  const { caps, highest, quote } = options
  const maxPriorityFeePerGas = BigInts.max(
    raised(highest.maxPriorityFeePerGas),
    quote?.maxPriorityFeePerGas ?? 0n
  )
  const maxFeePerGas = BigInts.max(
    BigInts.max(raised(highest.maxFeePerGas), quote?.maxFeePerGas ?? 0n),
    maxPriorityFeePerGas
  )
  if (maxFeePerGas > caps.maxFeePerGas)
    return Either.left(new AboveCap({ needed: maxFeePerGas, cap: caps.maxFeePerGas }))
  if (maxPriorityFeePerGas > caps.maxPriorityFeePerGas)
    return Either.left(new AboveCap({ needed: maxPriorityFeePerGas, cap: caps.maxPriorityFeePerGas }))
  return Either.right({ maxFeePerGas, maxPriorityFeePerGas })
}
