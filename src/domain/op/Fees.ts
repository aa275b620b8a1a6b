import * as BigInts from "effect/BigInt"
import * as Data from "effect/Data"
import * as Either from "effect/Either"

/** EIP-1559 prices, wei per gas unit. maxPriorityFeePerGas is never above maxFeePerGas. */
export interface FeePrices {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/** The chain asks for more than the operator allows; both in wei per gas unit. */
export class AboveCap extends Data.TaggedError("AboveCap")<{
  /** Next base fee plus tip, without any buffer. */
  readonly needed: bigint
  readonly cap: bigint
}> {}

/**
 * Prices for a transaction in the next block: maxFeePerGas = overshoot(nextBaseFee + tip), cut to the operator's
 * absolute cap; the tip as it is. `Left` when the price without any buffer is above the cap already: such a
 * transaction would only wait.
 */
export const quote = (chain: {
  readonly nextBaseFee: bigint
  readonly tip: bigint
  /** Adds the caller's buffer; not below its argument. */
  readonly overshoot: (price: bigint) => bigint
  readonly cap: bigint
}): Either.Either<FeePrices, AboveCap> => {
  const { cap, nextBaseFee, overshoot, tip } = chain
  const needed = nextBaseFee + tip
  if (needed > cap) return Either.left(new AboveCap({ needed, cap }))
  const maxFeePerGas = BigInts.min(overshoot(needed), cap)
  return Either.right({ maxFeePerGas, maxPriorityFeePerGas: BigInts.min(tip, maxFeePerGas) })
}
