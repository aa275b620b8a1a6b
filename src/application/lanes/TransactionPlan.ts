import * as BigInts from "effect/BigInt"
import type * as Deferred from "effect/Deferred"
import * as Result from "effect/Result"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as SubmitterReimbursement from "../../domain/erc4337/gas/SubmitterReimbursement.js"
import type * as Percent from "../../domain/erc4337/Percent.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { Bundle, BundlerError } from "../ports/chain/Bundler.js"
import type { Holding } from "../ports/journal/Holding.js"

/** A bundle that waits for its transaction. */
export interface QueuedBundle {
  readonly bundle: Bundle
  /** Under which claim of the lane it was made; null: not known. */
  readonly holding: Holding | null
  /** Its place among the lane's work. */
  readonly arrival: number
  readonly sent: Deferred.Deferred<void, BundlerError>
}

/** What one transaction carries. */
export interface TransactionPlan {
  readonly bundles: ReadonlyArray<QueuedBundle>
  readonly prices: FeePrices
  readonly l1Fee: bigint
  readonly gasLimit: bigint
  /** The buffer of the transaction's gas, and what it may have at most. */
  readonly gasOvershoot: Percent.Percent
  readonly gasBound: bigint
}

/** The earliest claim of the lane under which a bundle of it was made. */
export const holding = ({ bundles }: Pick<TransactionPlan, "bundles">): Holding | null =>
  bundles.reduce<Holding | null>(
    (first, { holding: own }) => (own !== null && own.epoch < (first?.epoch ?? Infinity) ? own : first),
    null
  )

/** Its ops have to give the submitter back what the transaction costs. */
export const isService = ({ bundle }: QueuedBundle): boolean => bundle.access.key === "serviceEoa"

/** It brings wallets into being, while its transaction is checked: before any op of it is executed. */
export const creates = ({ bundle }: QueuedBundle): boolean =>
  bundle.ops.some(({ op }) => op.initCode !== Hex.empty)

/** It executes nothing. */
export const isCreation = ({ bundle }: QueuedBundle): boolean =>
  bundle.ops.every(({ op }) => op.initCode !== Hex.empty && op.callData === Hex.empty)

/** Those before the first that creates a wallet; all where the first does, or nothing that is on its way calls contracts. */
export const before = (
  queue: ReadonlyArray<QueuedBundle>,
  isCalling: boolean
): ReadonlyArray<QueuedBundle> => {
  const at = isCalling ? queue.findIndex(creates) : -1
  return at > 0 ? queue.slice(0, at) : queue
}

/** What the ops declare, or what the transaction used when it was tried and the buffer; at most the bound. */
export const gasLimit = (
  { gasBound, gasLimit, gasOvershoot }: TransactionPlan,
  tried: SubmitterReimbursement.BundleGas | null
): bigint =>
  tried === null
    ? gasLimit
    : BigInts.max(gasLimit, BigInts.min(Gas.overshoot(tried.used, gasOvershoot), gasBound))

/** The bundles together, as far as they go into one transaction: the first always does, the others in order while they fit. */
export const from = ([first, ...others]: readonly [
  QueuedBundle,
  ...ReadonlyArray<QueuedBundle>
]): TransactionPlan => {
  const { chain, entryPoint, version } = first.bundle
  let {
    gasBound,
    gasOvershoot,
    prices
  }: { gasBound: bigint; gasOvershoot: Percent.Percent; prices: FeePrices } = first.bundle
  const limitOf = (ops: Bundle["ops"], bound: bigint, overshoot: Percent.Percent) =>
    Gas.transactionGasLimit(
      version,
      ops.map(({ op }) => op),
      { bound, overshoot, withoutPostOp: first.bundle.profile.sponsor?.paymaster ?? null }
    )
  let ops = first.bundle.ops
  // Bundles are made to fit: one that does not is tried with all that there is.
  let gasLimit = Result.getOrElse(limitOf(ops, gasBound, gasOvershoot), () => gasBound)
  const { aggregate } = first.bundle
  // One signature is that of the ops of one bundle.
  if (aggregate !== null) {
    gasLimit = BigInts.min(gasLimit + Gas.overshoot(aggregate.gas, gasOvershoot), gasBound)
    return { bundles: [first], prices, l1Fee: first.bundle.l1Fee, gasLimit, gasOvershoot, gasBound }
  }
  const bundles = [first]
  if (first.bundle.alone)
    return { bundles, prices, l1Fee: first.bundle.l1Fee, gasLimit, gasOvershoot, gasBound }
  for (const queued of others) {
    const { bundle } = queued
    if (bundle.chain !== chain || bundle.entryPoint !== entryPoint) continue
    if (bundle.aggregate !== null || bundle.alone) continue
    // Accounts that share the service's EOA share no transaction: each is to bear what its own ops do.
    if (bundle.access.accountId !== first.bundle.access.accountId) continue
    if (bundle.prices.legacy !== prices.legacy) continue
    const bound = BigInts.min(bundle.gasBound, gasBound)
    const overshoot = bundle.gasOvershoot > gasOvershoot ? bundle.gasOvershoot : gasOvershoot
    const together = limitOf([...ops, ...bundle.ops], bound, overshoot)
    if (Result.isFailure(together)) break
    bundles.push(queued)
    ops = [...ops, ...bundle.ops]
    gasLimit = together.success
    gasBound = bound
    gasOvershoot = overshoot
    // What the service's EOA pays for a gas unit is never more than any of the ops pays.
    prices = isService(first)
      ? SubmitterReimbursement.prices(prices, [bundle.prices])
      : {
          maxFeePerGas: BigInts.max(prices.maxFeePerGas, bundle.prices.maxFeePerGas),
          maxPriorityFeePerGas: BigInts.max(prices.maxPriorityFeePerGas, bundle.prices.maxPriorityFeePerGas),
          legacy: prices.legacy
        }
  }
  const l1Fee = bundles.reduce((sum, { bundle }) => sum + bundle.l1Fee, 0n)
  return { bundles, prices, l1Fee, gasLimit, gasOvershoot, gasBound }
}
