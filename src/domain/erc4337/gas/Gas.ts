import * as BigInts from "effect/BigInt"
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import type { Address } from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import { EntryPointSpec, type Version } from "../entrypoint/EntryPointSpec.js"
import type { Declared } from "../entrypoint/Spec.js"
import * as Percent from "../Percent.js"
import * as PaymasterData from "../paymaster/PaymasterData.js"
import type { UserOperation } from "../UserOperation.js"
import * as DataCost from "./DataCost.js"
import type { Measure } from "./GasLens.js"

/**
 * The gas of an ERC-4337 op: its three limits from the lens's measure, the wei that the wallet must be able to
 * pay, and the gas of the `handleOps` transaction that carries it. Integers only; gas in gas units, money in wei.
 */

/** The op's gas limits. */
export type OpLimits = Pick<UserOperation, "callGasLimit" | "verificationGasLimit" | "preVerificationGas">

/** ceil(x * (100 + percent) / 100), exact; `x` is not negative. */
export const overshoot = (x: bigint, percent: Percent.Percent): bigint =>
  (x * (Percent.whole + percent) + Percent.whole - 1n) / Percent.whole

const word = 32n

/** ceil(whole / parts). */
const share = (whole: bigint, parts: bigint): bigint => (whole + parts - 1n) / parts

/** ceil(x * 1.1). */
const plusTenth = (x: bigint): bigint => (x * 11n + 9n) / 10n

/** Gas of every EntryPoint within verificationGasLimit, in addition to its own figure: per 32 bytes of the op's data, */
const entryPointVerificationPerWord = 16n
/** and at creation its checks and the AccountDeployed event. */
const entryPointCreation = 6_200n

/** More of it with a paymaster: its data are checked, and the wallet's deposit is not read before. */
const entryPointSponsored = 3_000n

/** Up to here a validation uses precompiles, whose cost is the same for every signature. */
const costlyValidation = 100_000n

/** Gas that a real signature may cost beyond the measured dummy: wallets refuse some dummies a little sooner. */
const signatureSlack = 1_800n

/**
 * EIP-150's share of the two calls inside a validation, the slack of a real signature, and a tenth of the gas above usual
 * validations: P-256 in Solidity costs more for some signatures than for others.
 */
const validationSlack = (gas: bigint): bigint =>
  share(gas, 32n) + signatureSlack + share(BigInts.max(0n, gas - costlyValidation), 10n)

type Dynamic = Pick<DataCost.OpData, "initCode" | "callData" | "paymasterAndData" | "signature">

/** Gas that a validation measured only behind others may lack: beacon, implementation, validator, configuration. */
const coldValidationSlack = 15_000n

/** The op's dynamic fields, in words. */
const words = (op: Dynamic): bigint =>
  share(
    BigInt(
      Hex.size(op.initCode) + Hex.size(op.callData) + Hex.size(op.paymasterAndData) + Hex.size(op.signature)
    ),
    word
  )

/**
 * verificationGasLimit before any overshoot: creation + validation + bookkeeping + the EntryPoint's own part.
 * The measure covers creation, first use of a nonce key, payment of the prefund and a first deposit,
 * if it was made with a `requiredPrefund` not below the final one.
 */
export const verificationGasLimit = (
  version: Version,
  measure: Pick<Measure, "creationGas" | "validationGas" | "bookkeepingGas" | "coldValidation">,
  op: Dynamic
): bigint =>
  measure.creationGas +
  share(measure.creationGas, 64n) +
  measure.validationGas +
  validationSlack(measure.validationGas) +
  measure.bookkeepingGas +
  EntryPointSpec[version].gas.verification +
  entryPointVerificationPerWord * words(op) +
  (measure.creationGas > 0n ? entryPointCreation : 0n) +
  (op.paymasterAndData === Hex.empty ? 0n : entryPointSponsored) +
  (measure.coldValidation ? 0n : coldValidationSlack)

/** Gas that a call measured only behind its predecessors may lack: `transferFrom` after its `approve` 17k. */
const coldCallSlack = 20_000n

/** callGasLimit before any overshoot: the least that was found; 0 for empty callData, which the EntryPoint does not call. */
export const callGasLimit = (measure: Pick<Measure, "callLimit" | "coldCall">, callData: Hex.Hex): bigint =>
  callData.length <= 2 ? 0n : measure.callLimit + (measure.coldCall ? 0n : coldCallSlack)

/**
 * The limit of a frame, from the node's estimate, which is the least with which it succeeds. Adds a tenth and 5,000: a
 * call that swallows another call's failure may need more to behave as with plenty.
 */
export const unverifiedLimit = (estimate: bigint): bigint => plusTenth(estimate) + 5_000n

/** Gas of the EntryPoint within a paymaster's limit that the lens does not measure: the paymaster's first call, */
const entryPointPaymaster = 2_200n
/** and copying the op into it and the context out of it, per 32 bytes of the op's data. */
const entryPointPaymasterPerWord = 4n

/** Gas for the paymaster's validation before any overshoot: the least that was found + the EntryPoint's own part. */
export const paymasterVerificationGasLimit = (
  measure: Pick<Measure, "paymasterLimit" | "coldValidation">,
  op: Dynamic
): bigint =>
  measure.paymasterLimit +
  entryPointPaymaster +
  entryPointPaymasterPerWord * words(op) +
  (measure.coldValidation ? 0n : coldValidationSlack)

/** Gas for the paymaster's postOp before any overshoot: the least that was found; 0 when it has none. */
export const postOpGasLimit = ({ postOpLimit }: Pick<Measure, "postOpLimit">): bigint => postOpLimit

/** The fields of an op with the gas limits that the EntryPoint meters. */
export type MeteredLimits = Pick<UserOperation, "callGasLimit" | "verificationGasLimit" | "paymasterAndData">

/**
 * The limits that the EntryPoint meters, the caller's buffer included. The paymaster's own limits, in paymasterAndData
 * from v0.7 on, are not lowered where already set.
 */
export const meteredLimits = (
  version: Version,
  op: DataCost.OpData,
  measure: Measure,
  percent: Percent.Percent
): MeteredLimits => {
  const { callData, paymasterAndData } = op
  const callGas = overshoot(callGasLimit(measure, callData), percent)
  const verification = verificationGasLimit(version, measure, op)
  const wanted = PaymasterData.read(version, paymasterAndData)?.limits ?? PaymasterData.noLimits
  const paymaster =
    paymasterAndData === Hex.empty
      ? PaymasterData.noLimits
      : {
          verificationGasLimit: paymasterVerificationGasLimit(measure, op),
          postOpGasLimit: postOpGasLimit(measure)
        }
  return {
    callGasLimit: callGas,
    verificationGasLimit: overshoot(
      EntryPointSpec[version].gas.verificationGasLimit(verification, paymaster),
      percent
    ),
    paymasterAndData: PaymasterData.withLimits(version, paymasterAndData, {
      verificationGasLimit: BigInts.max(
        overshoot(paymaster.verificationGasLimit, percent),
        wanted.verificationGasLimit
      ),
      postOpGasLimit: BigInts.max(overshoot(paymaster.postOpGasLimit, percent), wanted.postOpGasLimit)
    })
  }
}

const transactionBase = 21_000n

/** Gas that a transaction with this data costs before anything runs: 21,000 and EIP-2028. */
export const intrinsic = (data: Hex.Hex): bigint => transactionBase + DataCost.ofBytes(data).gas

/** The least cost of a transaction with this data: its intrinsic gas, and EIP-7623's floor. */
export const leastOf = (data: Hex.Hex): bigint =>
  BigInts.max(intrinsic(data), transactionBase + DataCost.floorOf(DataCost.ofBytes(data)))

export interface PreVerification {
  readonly version: Version
  /** Gas that the op is sure to use and pay in addition (EIP-7623's floor only bites when it is little). */
  readonly measuredGas?: bigint
  /** Gas at the op's price that pays for the data on layer 1: `l1DataGas`. */
  readonly l1Gas?: bigint
}

/** Copying of the op's data that no EntryPoint meters, per word. */
const unmeteredPerWord = 10n

/** preVerificationGas: the transaction's cost for this op that the EntryPoint does not meter, as if it were alone in it. */
export const preVerificationGas = (op: DataCost.OpData, options: PreVerification): bigint => {
  const data = DataCost.ofOp(options.version, op)
  const { perBundle, perOp } = EntryPointSpec[options.version].gas.unmetered
  const executed = perOp + unmeteredPerWord * share(data.bytes, word) + perBundle
  const usual = transactionBase + DataCost.handleOpsFrame.gas + data.gas + executed
  const floor = transactionBase + DataCost.floorOf(DataCost.handleOpsFrame) + DataCost.floorOf(data)
  return BigInts.max(usual, floor - (options.measuredGas ?? 0n)) + (options.l1Gas ?? 0n)
}

/** ceil(fee * 1.2 / price): the cost of layer 1 data, in gas at the op's price. Both in wei; a price of 0 gives 0. */
export const l1DataGas = (l1Fee: bigint, gasPrice: bigint): bigint =>
  gasPrice === 0n ? 0n : share(l1Fee * 12n, gasPrice * 10n)

/** Gas that an op's paymaster may use in addition to the op's own limits, charged in advance. */
const paymasterGas = (
  version: Version,
  op: Pick<UserOperation, "paymasterAndData" | "verificationGasLimit">
): bigint => {
  const paymaster = PaymasterData.read(version, op.paymasterAndData)
  return paymaster === null ? 0n : EntryPointSpec[version].gas.paymasterPrefund(op, paymaster.limits)
}

/** Wei that the EntryPoint demands before it runs the op (its `_getRequiredPrefund`). */
export const requiredPrefund = (
  version: Version,
  op: OpLimits & Pick<DataCost.OpData, "maxFeePerGas" | "paymasterAndData">
): bigint =>
  (op.callGasLimit + op.verificationGasLimit + op.preVerificationGas + paymasterGas(version, op)) *
  op.maxFeePerGas

/** The bundle needs more gas than one transaction may have. */
export class BundleTooLarge extends Data.TaggedError("BundleTooLarge")<{
  readonly needed: bigint
  readonly bound: bigint
}> {}

/** Gas to write the deposit of a wallet that had none: refunded, but only after the transaction. */
const firstDeposit = 20_000n

/** Gas of an op at its limits; `withoutPostOp`: a paymaster known to want no postOp. */
const declaredIn = (version: Version, op: UserOperation, withoutPostOp: Address | null): Declared => {
  const paymaster = PaymasterData.read(version, op.paymasterAndData)
  return EntryPointSpec[version].gas.declared(
    op,
    paymaster === null ? null : { limits: paymaster.limits, settles: paymaster.paymaster !== withoutPostOp }
  )
}

/**
 * Gas limit of the `handleOps` transaction: enough for every frame to get the gas that its op declares (otherwise AA95).
 * Only the rest is overshot: the ops' limits have their own buffer and bound the ops' use. At most `bound`, the smallest
 * of the block's gas limit, 2^24 where EIP-7825 holds, and the operator's. `Failure` if too large without overshoot.
 */
export const transactionGasLimit = (
  version: Version,
  ops: ReadonlyArray<UserOperation>,
  options: {
    readonly bound: bigint
    readonly overshoot: Percent.Percent
    /** A paymaster that is known to want no postOp. */
    readonly withoutPostOp?: Address | null
  }
): Result.Result<bigint, BundleTooLarge> => {
  const { perBundle, perOp } = EntryPointSpec[version].gas.unmetered
  let data = DataCost.handleOpsFrame
  let unmeteredGas = perBundle
  let verification = 0n
  let largestVerification = 0n
  let execution = 0n
  let peak = 0n
  const payers = new Set<Address>()
  for (const op of ops) {
    const cost = DataCost.ofOp(version, op)
    const declared = declaredIn(version, op, options.withoutPostOp ?? null)
    data = DataCost.add(data, cost)
    if (op.paymasterAndData === Hex.empty) payers.add(op.sender)
    unmeteredGas += perOp + unmeteredPerWord * share(cost.bytes, word)
    verification += declared.verification
    largestVerification = BigInts.max(largestVerification, declared.verification)
    peak = BigInts.max(peak, execution + declared.inHand)
    execution += declared.execution
  }
  // The calls' gas covers EIP-150's share of the last validation; ops without calls may lack it.
  const refunded = firstDeposit * BigInt(payers.size)
  const executed =
    verification + refunded + BigInts.max(BigInts.max(peak, execution), share(largestVerification, 63n))
  const own = transactionBase + data.gas + unmeteredGas
  const floor = transactionBase + DataCost.floorOf(data)
  const needed = BigInts.max(executed + own, floor)
  if (needed > options.bound) return Result.fail(new BundleTooLarge({ needed, bound: options.bound }))
  const wished = BigInts.max(
    executed + overshoot(own, options.overshoot),
    overshoot(floor, options.overshoot)
  )
  return Result.succeed(BigInts.min(wished, options.bound))
}
