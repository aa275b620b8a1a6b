import * as BigInts from "effect/BigInt"
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Hex from "../evm/Hex.js"
import type { Version } from "./EntryPoint.js"
import type { Measure } from "./GasLens.js"
import * as PaymasterData from "./PaymasterData.js"
import * as Percent from "./Percent.js"
import type { UserOperation } from "./UserOperation.js"

/**
 * The gas of an ERC-4337 op: its three limits out of what the lens measured, what the wallet must be able to
 * pay, and the gas of the `handleOps` transaction that carries it. Integers only; gas in gas units, money in wei.
 */

/** The op's fields that are its data, gas limits apart. `signature` of real length (a dummy proof will do). */
export type OpData = Omit<UserOperation, keyof OpLimits>

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

/** What the EntryPoint spends within verificationGasLimit beside what the lens measures: copying and hashing the op, */
const entryPointVerification = 5_500n
/** per 32 bytes of the op's data, */
const entryPointVerificationPerWord = 16n
/** and at creation its checks and the AccountDeployed event. */
const entryPointCreation = 2_500n

type Dynamic = Pick<OpData, "initCode" | "callData" | "paymasterAndData" | "signature">

/** What a validation measured only behind others may need more alone: beacon, implementation, validator, configuration. */
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
 * verificationGasLimit before any overshoot: (creation + validation) * 1.1 + bookkeeping + the EntryPoint's own part.
 * The measure tells creation, first use of a nonce key, payment of the prefund and a first deposit apart by itself,
 * if it was made with a `requiredPrefund` not below the final one.
 */
export const verificationGasLimit = (
  measure: Pick<Measure, "creationGas" | "validationGas" | "bookkeepingGas" | "coldValidation">,
  op: Dynamic
): bigint =>
  plusTenth(measure.creationGas + measure.validationGas) +
  measure.bookkeepingGas +
  entryPointVerification +
  entryPointVerificationPerWord * words(op) +
  (measure.creationGas > 0n ? entryPointCreation : 0n) +
  (measure.coldValidation ? 0n : coldValidationSlack)

/** A call's slack for the gas that EIP-150 withholds from nested calls and that a value transfer needs in hand. */
const callSlack = 5_000n
/** What a call measured only behind its predecessors may need more alone: `transferFrom` after its `approve` 17k. */
const coldCallSlack = 20_000n

/** callGasLimit before any overshoot: call * 1.1 + 5,000; 0 for empty callData, which the EntryPoint does not call. */
export const callGasLimit = (measure: Pick<Measure, "callGas" | "coldCall">, callData: Hex.Hex): bigint =>
  callData.length <= 2 ? 0n : plusTenth(measure.callGas) + callSlack + (measure.coldCall ? 0n : coldCallSlack)

/** What the EntryPoint spends within a paymaster's limit beside what the lens measures: the paymaster's first call, */
const entryPointPaymaster = 1_800n
/** and copying the op into it and the context out of it, per 32 bytes of the op's data. */
const entryPointPaymasterPerWord = 4n

/** Gas for the paymaster's validation before any overshoot: validation * 1.1 + the EntryPoint's own part. */
export const paymasterVerificationGasLimit = (measure: Pick<Measure, "paymasterGas">, op: Dynamic): bigint =>
  plusTenth(measure.paymasterGas) + entryPointPaymaster + entryPointPaymasterPerWord * words(op)

/** Gas for the paymaster's postOp before any overshoot: postOp * 1.1 + 5,000; 0 when it has none. */
export const postOpGasLimit = (measure: Pick<Measure, "postOpGas">): bigint =>
  measure.postOpGas === 0n ? 0n : plusTenth(measure.postOpGas) + callSlack

/** The fields of an op that hold gas limits of what the EntryPoint meters. */
export type MeteredLimits = Pick<UserOperation, "callGasLimit" | "verificationGasLimit" | "paymasterAndData">

/**
 * The limits of what the EntryPoint meters, the caller's buffer included. On v0.6 the paymaster's validation shares
 * verificationGasLimit, and its postOp is given as much once more; from v0.7 on paymasterAndData says its own, which are
 * not lowered where it says some already.
 */
export const meteredLimits = (
  version: Version,
  op: OpData,
  measure: Measure,
  percent: Percent.Percent
): MeteredLimits => {
  const { callData, paymasterAndData } = op
  const callGas = overshoot(callGasLimit(measure, callData), percent)
  const verification = verificationGasLimit(measure, op)
  const wanted = PaymasterData.read(version, paymasterAndData)?.limits ?? PaymasterData.noLimits
  const paymaster =
    paymasterAndData === Hex.empty
      ? PaymasterData.noLimits
      : {
          verificationGasLimit: paymasterVerificationGasLimit(measure, op),
          postOpGasLimit: postOpGasLimit(measure)
        }
  const shared = BigInts.max(verification + paymaster.verificationGasLimit, paymaster.postOpGasLimit)
  return {
    callGasLimit: callGas,
    verificationGasLimit: overshoot(version === "v0.6" ? shared : verification, percent),
    paymasterAndData: PaymasterData.withLimits(version, paymasterAndData, {
      verificationGasLimit: BigInts.max(
        overshoot(paymaster.verificationGasLimit, percent),
        wanted.verificationGasLimit
      ),
      postOpGasLimit: BigInts.max(overshoot(paymaster.postOpGasLimit, percent), wanted.postOpGasLimit)
    })
  }
}

/** Intrinsic gas of transaction data (EIP-2028): 4 per zero byte, 16 per other byte. */
interface DataCost {
  readonly gas: bigint
  readonly bytes: bigint
}

const add = (...costs: ReadonlyArray<DataCost>): DataCost => ({
  gas: costs.reduce((sum, cost) => sum + cost.gas, 0n),
  bytes: costs.reduce((sum, cost) => sum + cost.bytes, 0n)
})

const ofBytes = (hex: string): DataCost => {
  let gas = 0n
  for (let i = 2; i < hex.length; i += 2) gas += hex[i] === "0" && hex[i + 1] === "0" ? 4n : 16n
  return { gas, bytes: BigInt(hex.length / 2 - 1) }
}

const ofUint = (value: bigint): DataCost => ofBytes(`0x${value.toString(16).padStart(64, "0")}`)

/** A word of which at most `bytes` bytes are not zero. */
const ofWord = (bytes: bigint): DataCost => ({ gas: 128n + bytes * 12n, bytes: word })

/** An ABI `bytes` value: length, content, padding. */
const ofDynamic = (hex: string): DataCost => {
  const content = ofBytes(hex)
  const padding = (word - (content.bytes % word)) % word
  return add(ofUint(content.bytes), content, { gas: padding * 4n, bytes: padding })
}

/** An op inside the ABI array of `handleOps`, its own offset word included; gas limits below 2^24 and offsets below 2^16. */
const ofOp = (version: Version, op: OpData): DataCost =>
  add(
    ofWord(2n),
    ofUint(BigInt(op.sender)),
    ofUint(op.nonce),
    ...(version === "v0.6"
      ? [ofWord(3n), ofWord(3n), ofWord(3n), ofUint(op.maxFeePerGas), ofUint(op.maxPriorityFeePerGas)]
      : [ofWord(6n), ofWord(3n), ofUint((op.maxPriorityFeePerGas << 128n) | op.maxFeePerGas)]),
    ofWord(2n),
    ofWord(2n),
    ofWord(2n),
    ofWord(2n),
    ofDynamic(op.initCode),
    ofDynamic(op.callData),
    ofDynamic(op.paymasterAndData),
    ofDynamic(op.signature)
  )

/** Selector, offset of the array, beneficiary, length of the array. */
const handleOpsFrame: DataCost = add({ gas: 64n, bytes: 4n }, ofWord(1n), ofWord(20n), ofWord(1n))

const transactionBase = 21_000n

/** Gas that a transaction with this data costs before anything runs: 21,000 and EIP-2028. */
export const intrinsic = (data: Hex.Hex): bigint => transactionBase + ofBytes(data).gas

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

/** What the EntryPoint does and does not meter, measured on anvil: around one op, and once per bundle. */
const unmetered: Readonly<Record<Version, { readonly perOp: bigint; readonly perBundle: bigint }>> = {
  "v0.6": { perOp: 9_000n, perBundle: 11_500n },
  "v0.7": { perOp: 7_000n, perBundle: 12_500n },
  "v0.8": { perOp: 8_400n, perBundle: 9_600n }
}
/** Copying of the op's data that it does not meter, per word. */
const unmeteredPerWord = 10n
/** A beneficiary that does not exist yet, and is none of the addresses that are warm from the start. */
const newAccount = 27_500n

/** preVerificationGas: what the transaction costs for this op and the EntryPoint does not meter. */
export const preVerificationGas = (op: OpData, options: PreVerification): bigint => {
  const parts = options.bundleSize ?? 1n
  const data = ofOp(options.version, op)
  const { perOp, perBundle } = unmetered[options.version]
  const executed =
    perOp +
    unmeteredPerWord * share(data.bytes, word) +
    share(perBundle + (options.beneficiaryEmpty === true ? newAccount : 0n), parts)
  const shared = share(transactionBase + handleOpsFrame.gas, parts)
  const metered = options.measuredGas ?? 0n
  const floor = share(transactionBase + floorOf(handleOpsFrame), parts) + floorOf(data)
  const usual = shared + data.gas + executed
  return BigInts.max(usual, floor - metered) + (options.l1Gas ?? 0n)
}

/** EIP-7623: 10 gas per token, where a byte that is not zero has four tokens and a zero byte one. */
const floorOf = (data: DataCost): bigint => (data.gas / 4n) * 10n

/** ceil(fee * 1.2 / price): what layer 1 data cost, in gas at the op's price. Both in wei; a price of 0 gives 0. */
export const l1DataGas = (l1Fee: bigint, gasPrice: bigint): bigint =>
  gasPrice === 0n ? 0n : share(l1Fee * 12n, gasPrice * 10n)

/**
 * Gas that the paymaster of an op may use beside the op's own limits, and that is charged in advance. v0.6: its
 * validation shares verificationGasLimit, its postOp may run twice with as much each. From v0.7 on paymasterAndData
 * says it behind the address: 16 bytes for the validation, 16 for postOp.
 */
const paymasterGas = (
  version: Version,
  { paymasterAndData, verificationGasLimit }: Pick<UserOperation, "paymasterAndData" | "verificationGasLimit">
): bigint => {
  const paymaster = PaymasterData.read(version, paymasterAndData)
  if (paymaster === null) return 0n
  if (version === "v0.6") return 2n * verificationGasLimit
  return paymaster.limits.verificationGasLimit + paymaster.limits.postOpGasLimit
}

/** Wei that the EntryPoint demands before it runs the op (its `_getRequiredPrefund`). */
export const requiredPrefund = (
  version: Version,
  op: OpLimits & Pick<OpData, "maxFeePerGas" | "paymasterAndData">
): bigint =>
  (op.callGasLimit + op.verificationGasLimit + op.preVerificationGas + paymasterGas(version, op)) *
  op.maxFeePerGas

/** The bundle needs more gas than one transaction may have. */
export class BundleTooLarge extends Data.TaggedError("BundleTooLarge")<{
  readonly needed: bigint
  readonly bound: bigint
}> {}

/** Gas that `innerHandleOp` wants in hand beside the call's limit. */
const innerReserve = 10_000n

/** x * 64/63, rounded up: what a caller must have to give `x` to one nested call (EIP-150). */
const held = (x: bigint): bigint => share(x * 64n, 63n)

/**
 * Gas limit of the `handleOps` transaction: enough for every frame to be given what its op declares (AA95
 * otherwise), overshot, at most `bound` (the smallest of the block's gas limit, 2^24 where EIP-7825 holds, the
 * operator's). `Left` when it does not fit even without overshoot. v0.6 asks for verificationGasLimit once
 * more while it runs the call.
 */
export const transactionGasLimit = (
  version: Version,
  ops: ReadonlyArray<UserOperation>,
  options: { readonly bound: bigint; readonly overshoot: Percent.Percent }
): Either.Either<bigint, BundleTooLarge> => {
  let data = handleOpsFrame
  let declared = 0n
  let largestVerification = 0n
  let around = unmetered[version].perBundle + newAccount
  for (const op of ops) {
    const cost = ofOp(version, op)
    data = add(data, cost)
    declared += op.verificationGasLimit + op.callGasLimit + paymasterGas(version, op)
    around += unmetered[version].perOp + unmeteredPerWord * share(cost.bytes, word)
    if (version === "v0.6") largestVerification = BigInts.max(largestVerification, op.verificationGasLimit)
  }
  const executed = held(held(declared + largestVerification + innerReserve)) + around
  const usual = transactionBase + data.gas + executed
  const floor = transactionBase + floorOf(data)
  const needed = BigInts.max(usual, floor)
  if (needed > options.bound) return Either.left(new BundleTooLarge({ needed, bound: options.bound }))
  return Either.right(BigInts.min(overshoot(needed, options.overshoot), options.bound))
}
