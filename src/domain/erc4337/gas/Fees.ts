import * as BigInts from "effect/BigInt"
import * as Data from "effect/Data"
import * as Result from "effect/Result"

/** Price of a gas unit, wei. maxPriorityFeePerGas is never above maxFeePerGas. */
export interface FeePrices {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
  /** The chain has no EIP-1559 market: both prices are the gas price, and transactions are of type 0. */
  readonly legacy: boolean
}

/** The chain's price of a gas unit in its next block, wei. */
export interface Market {
  /** Null without EIP-1559. */
  readonly nextBaseFee: bigint | null
  /** The block author's share: maxPriorityFeePerGas, or the whole gas price without a base fee. */
  readonly tip: bigint
}

/** The operator's bounds on the price of a gas unit, wei. */
export interface Bounds {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
  /** The chain's nodes take no transaction with less. */
  readonly minPriorityFeePerGas: bigint
}

/** The chain asks for more than the operator allows; both in wei per gas unit. */
export class AboveCap extends Data.TaggedError("AboveCap")<{
  /** Price of the next block, without any buffer. */
  readonly needed: bigint
  readonly cap: bigint
}> {}

/**
 * Prices for a transaction in the next block: maxFeePerGas = overshoot(nextBaseFee + tip), cut to the operator's
 * absolute cap. The tip is the chain's, cut to the operator's cap on tips and raised to the chain's least tip. `Failure`
 * when the price without any buffer is above the cap, since such a transaction would only wait, or when the least tip is
 * above its cap.
 */
export const quote = (
  { nextBaseFee, tip: asked }: Market,
  bounds: Bounds,
  /** Adds the caller's buffer; not below its argument. */
  overshoot: (price: bigint) => bigint
): Result.Result<FeePrices, AboveCap> => {
  const { maxFeePerGas: cap, maxPriorityFeePerGas: tipCap, minPriorityFeePerGas: least } = bounds
  if (nextBaseFee === null) {
    const needed = BigInts.max(asked, least)
    if (needed > cap) return Result.fail(new AboveCap({ needed, cap }))
    const gasPrice = BigInts.min(overshoot(needed), cap)
    return Result.succeed({ maxFeePerGas: gasPrice, maxPriorityFeePerGas: gasPrice, legacy: true })
  }
  if (least > tipCap) return Result.fail(new AboveCap({ needed: least, cap: tipCap }))
  const tip = BigInts.max(BigInts.min(asked, tipCap), least)
  const needed = nextBaseFee + tip
  if (needed > cap) return Result.fail(new AboveCap({ needed, cap }))
  const maxFeePerGas = BigInts.min(overshoot(needed), cap)
  return Result.succeed({ maxFeePerGas, maxPriorityFeePerGas: BigInts.min(tip, maxFeePerGas), legacy: false })
}

/** One block of a fee history. */
export interface PastBlock {
  /** Tip of the asked percentile of the block's gas, wei; 0 when it is empty. */
  readonly reward: bigint
  /** No transaction paid anything in it. */
  readonly empty: boolean
}

/**
 * The tip for the next block: the median of recent blocks, or the node's suggestion if that is more. Empty blocks do not
 * count. Null without either.
 */
export const tipOf = (blocks: ReadonlyArray<PastBlock>, suggested: bigint | null): bigint | null => {
  const paid = blocks
    .filter(({ empty }) => !empty)
    .map(({ reward }) => reward)
    .sort(BigInts.Order)
  const median = paid[paid.length >> 1]
  if (median === undefined) return suggested
  return BigInts.max(median, suggested ?? 0n)
}
