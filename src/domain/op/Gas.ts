import * as Data from "effect/Data"
import type * as Either from "effect/Either"
import type * as Address from "../evm/Address.js"
import type * as Hex from "../evm/Hex.js"
import type { Measure } from "./GasLens.js"
import * as Percent from "./Percent.js"

/**
 * The gas of an ERC-4337 op: its three limits out of what the lens measured, what the wallet must be able to
 * pay, and the gas of the `handleOps` transaction that carries it. Integers only; gas in gas units, money in wei.
 */

export type Version = "v0.6" | "v0.7" | "v0.8"

/** The op's fields that are part of its calldata, gas limits apart. `signature` of real length (a dummy proof will do). */
export interface OpData {
  readonly sender: Address.Address
  readonly nonce: bigint
  readonly initCode: Hex.Hex
  readonly callData: Hex.Hex
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
  readonly paymasterAndData: Hex.Hex
  readonly signature: Hex.Hex
}

/** The op's gas limits. */
export interface OpLimits {
  readonly callGasLimit: bigint
  readonly verificationGasLimit: bigint
  readonly preVerificationGas: bigint
}

/** ceil(x * (100 + percent) / 100), exact; `x` is not negative. */
export const overshoot = (x: bigint, percent: Percent.Percent): bigint =>
  (x * (Percent.whole + percent) + Percent.whole - 1n) / Percent.whole

/**
 * verificationGasLimit before any overshoot: (creation + validation + the EntryPoint's own part) * 1.1. The
 * EntryPoint's part is larger when it writes a storage slot that was zero: at creation and at the first use of
 * a nonce key (`firstUse`: the op's sequence is 0).
 */
export declare const verificationGasLimit: (measure: Measure, firstUse: boolean) => bigint

/** callGasLimit before any overshoot; 0 for empty callData. */
export declare const callGasLimit: (measure: Measure, callData: Hex.Hex) => bigint

export interface PreVerification {
  readonly version: Version
  /** Ops that share the transaction; 1 unless more are certain. */
  readonly bundleSize?: bigint
  /** The beneficiary account has neither balance, nonce nor code: paying it creates it (25,000). */
  readonly beneficiaryEmpty?: boolean
  /** Gas that the op is sure to use and pay beside this (EIP-7623's floor only bites when it is little). */
  readonly measuredGas?: bigint
  /** Gas at the op's price that pays for the data on layer 1: `l1DataGas`. */
  readonly l1Gas?: bigint
}

/** preVerificationGas: what the transaction costs for this op and the EntryPoint does not meter. */
export declare const preVerificationGas: (op: OpData, options: PreVerification) => bigint

/** ceil(fee * 1.2 / price): what layer 1 data cost, in gas at the op's price. Both in wei; a price of 0 gives 0. */
export declare const l1DataGas: (l1Fee: bigint, gasPrice: bigint) => bigint

/** Wei that the EntryPoint demands before it runs the op (its `_getRequiredPrefund`). */
export declare const requiredPrefund: (
  version: Version,
  op: OpLimits & Pick<OpData, "maxFeePerGas" | "paymasterAndData">
) => bigint

/** The bundle needs more gas than one transaction may have. */
export class BundleTooLarge extends Data.TaggedError("BundleTooLarge")<{
  readonly needed: bigint
  readonly bound: bigint
}> {}

/**
 * Gas limit of the `handleOps` transaction: enough for every frame to be given what its op declares (AA95
 * otherwise), overshot, at most `bound` (the smallest of the block's gas limit, 2^24 where EIP-7825 holds, the
 * operator's). `Left` when even without overshoot it does not fit.
 */
export declare const transactionGasLimit: (
  version: Version,
  ops: ReadonlyArray<OpData & OpLimits>,
  options: { readonly bound: bigint; readonly overshoot: Percent.Percent }
) => Either.Either<bigint, BundleTooLarge>
