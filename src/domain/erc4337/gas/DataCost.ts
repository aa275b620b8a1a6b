import type * as Hex from "../../primitives/Hex.js"
import { EntryPointSpec, type Version } from "../entrypoint/EntryPointSpec.js"
import type { GasFields, UserOperation } from "../entrypoint/Op.js"
import type { Layout } from "../entrypoint/Spec.js"

/** Intrinsic gas of transaction data (EIP-2028): 4 per zero byte, 16 per other byte. */
export interface DataCost {
  readonly gas: bigint
  readonly bytes: bigint
}

/** The limits of an op, whose own bytes count only once they are known. */
type Limits = Pick<GasFields, "callGasLimit" | "verificationGasLimit" | "preVerificationGas">

/** The op's data fields, without gas limits. `signature` of real length (a dummy proof will do). */
export type OpData = Omit<UserOperation, keyof Limits>

const word = 32n

/** "0" */
const zeroDigit = 48

export const add = (...costs: ReadonlyArray<DataCost>): DataCost => ({
  gas: costs.reduce((sum, cost) => sum + cost.gas, 0n),
  bytes: costs.reduce((sum, cost) => sum + cost.bytes, 0n)
})

/** Of `0x` and whole bytes. */
export const ofBytes = (hex: string): DataCost => {
  let zeros = 0
  for (let i = 2; i < hex.length; i += 2)
    if (hex.charCodeAt(i) === zeroDigit && hex.charCodeAt(i + 1) === zeroDigit) zeros++
  const bytes = hex.length / 2 - 1
  return { gas: BigInt(16 * bytes - 12 * zeros), bytes: BigInt(bytes) }
}

const ofUint = (value: bigint): DataCost => ofBytes(`0x${value.toString(16).padStart(64, "0")}`)

/** A word with at most `bytes` bytes that are not zero. */
const ofWord = (bytes: bigint): DataCost => ({ gas: 128n + bytes * 12n, bytes: word })

/** An ABI `bytes` value: length, content, padding. */
const ofDynamic = (hex: Hex.Hex): DataCost => {
  const content = ofBytes(hex)
  const padding = (word - (content.bytes % word)) % word
  return add(ofUint(content.bytes), content, { gas: padding * 4n, bytes: padding })
}

/** Stand for gas limits that are not known yet. */
const unknownLimits: Limits = {
  callGasLimit: 2n ** 24n - 1n,
  verificationGasLimit: 2n ** 24n - 1n,
  preVerificationGas: 2n ** 24n - 1n
}

/** An op inside the ABI array of `handleOps`, its own offset word included; gas limits below 2^24 and offsets below 2^16. */
const ofUnknownOp = (layout: Layout, op: OpData): DataCost =>
  add(
    ofWord(2n),
    ofUint(BigInt(op.sender)),
    ofUint(op.nonce),
    ...layout.gasWords({ ...op, ...unknownLimits }).map((each) => ofBytes(`0x${each}`)),
    ofWord(2n),
    ofWord(2n),
    ofWord(2n),
    ofWord(2n),
    ofDynamic(op.initCode),
    ofDynamic(op.callData),
    ofDynamic(op.paymasterAndData),
    ofDynamic(op.signature)
  )

/** Layout and cost of an op: bundles are tried in many sizes, each time with the same ops. An op never changes. */
const known = new WeakMap<OpData, { readonly layout: Layout; readonly cost: DataCost }>()

/** An op inside the ABI array of `handleOps`, with any gas limits below 2^24. */
export const ofOp = (version: Version, op: OpData): DataCost => {
  const { layout } = EntryPointSpec[version]
  const found = known.get(op)
  if (found?.layout === layout) return found.cost
  const cost = ofUnknownOp(layout, op)
  known.set(op, { layout, cost })
  return cost
}

/** Selector, offset of the array, beneficiary, length of the array. */
export const handleOpsFrame: DataCost = add({ gas: 64n, bytes: 4n }, ofWord(1n), ofWord(20n), ofWord(1n))

/** EIP-7623: 10 gas per token, where a nonzero byte has four tokens and a zero byte one. */
export const floorOf = (data: DataCost): bigint => (data.gas / 4n) * 10n
