import * as Transaction from "../../evm/Transaction.js"
import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"
import type { Version } from "../EntryPoint.js"
import * as UserOperation from "../UserOperation.js"

/** An OP-stack chain's fee for publishing a transaction's data on layer 1, from its predeploy GasPriceOracle. */

/** GasPriceOracle, at the same address on every OP-stack chain. */
export const oracle: Address.Address = Address.unsafe("0x420000000000000000000000000000000000000F")

/** `getL1Fee(bytes)`. */
const getL1Fee = "0x49948e0e" as Hex.Hex

/** Calldata that asks for the fee of a transaction's bytes. */
export const question = (transaction: Hex.Hex): Hex.Hex => Words.call(getL1Fee, [Words.bytes(transaction)])

/** `getOperatorFee(uint256)`. */
const getOperatorFee = "0x275aedd2" as Hex.Hex

/** Calldata that asks for the chain operator's fee for this gas, since the Isthmus upgrade. */
export const operatorQuestion = (gas: bigint): Hex.Hex => Words.call(getOperatorFee, [Words.uint(gas)])

/** An operator's fee: per transaction, and for `operatorUnits` of gas. Wei. */
export interface OperatorFee {
  readonly constant: bigint
  readonly ofUnits: bigint
}

/** Gas of the oracle's second query, after 0 gas: however the scalar is divided, the fee of a unit is exact by it. */
export const operatorUnits = 10n ** 12n

/** The fee from the oracle's answers for no gas and for `operatorUnits`. */
export const operatorFee = (ofNone: bigint, ofUnits: bigint): OperatorFee => ({
  constant: ofNone,
  ofUnits: ofUnits > ofNone ? ofUnits - ofNone : 0n
})

/** Wei for this gas, rounded up. */
export const operatorWei = ({ constant, ofUnits }: OperatorFee, gas: bigint): bigint =>
  constant + (gas * ofUnits + operatorUnits - 1n) / operatorUnits

/** Wei; null when the oracle did not answer (a chain without it). */
export const answer = (data: Hex.Hex): bigint | null =>
  Hex.size(data) === 32 ? Words.readUint(Words.read(data), 0) : null

/** ceil(fee * 1.2): a bound on the fee at inclusion. */
export const bound = (fee: bigint): bigint => (fee * 6n + 4n) / 5n

/** The fees that have these bounds, rounded up. */
export const unbound = (bounds: bigint): bigint => (bounds * 5n + 5n) / 6n

/** Incompressible bytes, always the same for a seed. */
const noise = (seed: Hex.Hex, size: number): Hex.Hex => {
  let block: Hex.Hex = Keccak.hash(seed)
  let digits = ""
  while (digits.length < 2 * size) {
    digits += block.slice(2)
    block = Keccak.hash(block)
  }
  return Hex.unsafe(`0x${digits.slice(0, 2 * size)}`)
}

/** Noise in place of the bytes that are not zero: a dummy proof repeats itself, a real one does not. */
const proofLike = (signature: Hex.Hex): Hex.Hex => {
  const random = noise(signature, Hex.size(signature))
  let digits = "0x"
  for (let at = 2; at < signature.length; at += 2)
    digits += signature.startsWith("00", at) ? "00" : random.slice(at, at + 2)
  return Hex.unsafe(digits)
}

/** An integer of `bytes` bytes out of the noise. */
const figure = (random: Hex.Hex, at: number, bytes: number): bigint =>
  BigInt(`0x${random.slice(2 + 2 * at, 2 + 2 * (at + bytes))}`)

/** The parts of a transaction that are known before it is priced and signed; `value` in wei. */
export interface Payload {
  readonly chainId: bigint
  readonly to: Address.Address
  readonly value: bigint
  readonly data: Hex.Hex
}

/**
 * Signed bytes like those of the transaction that will carry the payload, before its nonce, prices, gas limit and
 * signature are known: about as long, and no easier to compress.
 */
export const likeness = ({ chainId, data, to, value }: Payload): Hex.Hex => {
  const random = noise(data, 96)
  const transaction: Transaction.Transaction = {
    chainId,
    nonce: figure(random, 64, 4),
    legacy: false,
    maxPriorityFeePerGas: figure(random, 68, 6),
    maxFeePerGas: figure(random, 74, 6),
    gasLimit: figure(random, 80, 4),
    to,
    value,
    data
  }
  return Transaction.serialize(transaction, Hex.unsafe(`0x${random.slice(2, 130)}1c`))
}

/** Likewise for the `handleOps` that carries one op, whose limits and signature are unknown too. */
export const ofOp = (
  version: Version,
  entryPoint: Address.Address,
  chainId: bigint,
  beneficiary: Address.Address,
  op: UserOperation.UserOperation
): Hex.Hex => {
  const limits = noise(op.callData, 9)
  const drawn = {
    ...op,
    callGasLimit: figure(limits, 0, 3),
    verificationGasLimit: figure(limits, 3, 3),
    preVerificationGas: figure(limits, 6, 3),
    signature: proofLike(op.signature)
  }
  return likeness({
    chainId,
    to: entryPoint,
    value: 0n,
    data: UserOperation.handleOps(version, [drawn], beneficiary)
  })
}
