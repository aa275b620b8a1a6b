import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Uint from "../../primitives/Uint.js"
import * as Words from "../../primitives/Words.js"
import * as Frames from "./Frames.js"
import * as FunctionsOf from "./Functions.js"
import type { PaymasterLimits } from "./Op.js"
import type { Functions, GasRules, Layout, PaymasterFields, RpcMembers, Spec } from "./Spec.js"

/**
 * The parts of EntryPoints since v0.7: PackedUserOperation, where two limits or fees share a word, and paymasters with
 * their own gas limits.
 */

/** Two uint128 in one word. */
const pair = (high: bigint, low: bigint): string =>
  Words.uint((BigInt.asUintN(128, high) << 128n) | BigInt.asUintN(128, low))

export const layout: Layout = {
  struct: "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)",
  gasWords: (op) => [
    pair(op.verificationGasLimit, op.callGasLimit),
    Words.uint(op.preVerificationGas),
    pair(op.maxPriorityFeePerGas, op.maxFeePerGas)
  ],
  readRest: (tuple) => {
    const limits = Words.readUint(tuple, 128)
    const fees = Words.readUint(tuple, 192)
    return {
      callGasLimit: BigInt.asUintN(128, limits),
      verificationGasLimit: limits >> 128n,
      preVerificationGas: Words.readUint(tuple, 160),
      maxFeePerGas: BigInt.asUintN(128, fees),
      maxPriorityFeePerGas: fees >> 128n,
      paymasterAndData: Words.readBytes(tuple, 224),
      signature: Words.readBytes(tuple, 256)
    }
  }
}

const postOp = Keccak.selector("postOp(uint8,bytes,uint256,uint256)")

export const functions: Functions = {
  ...FunctionsOf.of(layout.struct),
  postOp: (context, actualGasCost, feePerGas) =>
    Words.call(postOp, [
      Words.uint(0n),
      Words.bytes(context),
      Words.uint(actualGasCost),
      Words.uint(feePerGas)
    ])
}

const limit = (value: bigint): Hex.Hex => Hex.unsafe(`0x${Words.uint(value, 128).slice(32)}`)

const readLimits = (paymasterAndData: Hex.Hex): PaymasterLimits => ({
  verificationGasLimit: BigInt(Hex.slice(paymasterAndData, 20, 36)),
  postOpGasLimit: BigInt(Hex.slice(paymasterAndData, 36, 52))
})

export const paymaster: PaymasterFields = {
  size: 52,
  names: "paymaster, its two gas limits",
  write: ({ postOpGasLimit, verificationGasLimit }) =>
    Hex.concat(limit(verificationGasLimit), limit(postOpGasLimit)),
  read: readLimits
}

export const objection: Spec["objection"] = ({ paymasterAndData }) => {
  if (paymasterAndData === Hex.empty) return null
  if (Hex.size(paymasterAndData) < paymaster.size)
    return `paymasterAndData must be empty or of at least ${paymaster.size} bytes`
  return Object.values(readLimits(paymasterAndData)).every((value) => Uint.fits(value, 120))
    ? null
    : "the paymaster's gas limits do not fit in 120 bits"
}

/** The rules that are independent of the gas of the EntryPoint's own code. */
export const gas: Pick<GasRules, "verificationGasLimit" | "paymasterPrefund" | "declared"> = {
  verificationGasLimit: (own) => own,
  paymasterPrefund: (_, { postOpGasLimit, verificationGasLimit }) => verificationGasLimit + postOpGasLimit,
  declared: ({ callGasLimit, verificationGasLimit }, payer) => {
    const settling = payer?.limits.postOpGasLimit ?? 0n
    return {
      verification: verificationGasLimit + (payer?.limits.verificationGasLimit ?? 0n),
      execution: callGasLimit + settling,
      inHand: Frames.held(Frames.held(callGasLimit + settling + Frames.innerReserve))
    }
  }
}

/** Without a factory (`0x`) the members are absent, as bundlers expect. */
const factory = (initCode: Hex.Hex): Readonly<Record<string, string>> =>
  initCode === Hex.empty ? {} : { factory: Hex.slice(initCode, 0, 20), factoryData: Hex.slice(initCode, 20) }

const paymasterMembers = (paymasterAndData: Hex.Hex): Readonly<Record<string, string>> => {
  if (paymasterAndData === Hex.empty) return {}
  const { postOpGasLimit, verificationGasLimit } = readLimits(paymasterAndData)
  return {
    paymaster: Hex.slice(paymasterAndData, 0, 20),
    paymasterVerificationGasLimit: Uint.toQuantity(verificationGasLimit),
    paymasterPostOpGasLimit: Uint.toQuantity(postOpGasLimit),
    paymasterData: Hex.slice(paymasterAndData, 52)
  }
}

export const rpc: RpcMembers = {
  write: ({ initCode, paymasterAndData }) => ({
    ...factory(initCode),
    ...paymasterMembers(paymasterAndData)
  }),
  readPaymaster: (answer) =>
    answer.paymaster == null || answer.paymasterData == null
      ? null
      : {
          paymaster: answer.paymaster,
          data: answer.paymasterData,
          verificationGasLimit: answer.paymasterVerificationGasLimit ?? null,
          postOpGasLimit: answer.paymasterPostOpGasLimit ?? null
        }
}
