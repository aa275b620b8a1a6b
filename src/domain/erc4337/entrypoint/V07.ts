import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Uint from "../../primitives/Uint.js"
import * as Words from "../../primitives/Words.js"
import type { PaymasterLimits } from "./Op.js"
import * as Shared from "./Shared.js"
import type { Layout, Spec } from "./Spec.js"

/**
 * EntryPoint v0.7: PackedUserOperation, where two limits or fees share a word, under the hash of v0.6, and paymasters with
 * their own gas limits.
 */

/** Two uint128 in one word. */
const pair = (high: bigint, low: bigint): string =>
  Words.uint((BigInt.asUintN(128, high) << 128n) | BigInt.asUintN(128, low))

const layout: Layout = {
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

const paymasterSize = 52

const limit = (value: bigint): Hex.Hex => Hex.unsafe(`0x${Words.uint(value, 128).slice(32)}`)

const readLimits = (paymasterAndData: Hex.Hex): PaymasterLimits => ({
  verificationGasLimit: BigInt(Hex.slice(paymasterAndData, 20, 36)),
  postOpGasLimit: BigInt(Hex.slice(paymasterAndData, 36, 52))
})

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

export const v07: Spec = {
  address: Address.unsafe("0x0000000071727De22E5E9d8BAf0edAc6f37da032"),
  deploymentSalt: Hex.unsafe32("0x90d8084deab30c2a37c45e8d47f49f2f7965183cb6990a98943ef94940681de3"),
  layout,
  functions: {
    ...Shared.functions(layout.struct),
    postOp: (context, actualGasCost, feePerGas) =>
      Words.call(postOp, [
        Words.uint(0n),
        Words.bytes(context),
        Words.uint(actualGasCost),
        Words.uint(feePerGas)
      ])
  },
  hash: Shared.hash,
  objection: ({ paymasterAndData }) => {
    if (paymasterAndData === Hex.empty) return null
    if (Hex.size(paymasterAndData) < paymasterSize)
      return `paymasterAndData must be empty or of at least ${paymasterSize} bytes`
    return Object.values(readLimits(paymasterAndData)).every((value) => Uint.fits(value, 120))
      ? null
      : "the paymaster's gas limits do not fit in 120 bits"
  },
  hasBegun: (validAfter, timestamp) => timestamp >= validAfter,
  paymaster: {
    size: paymasterSize,
    names: "paymaster, its two gas limits",
    write: ({ postOpGasLimit, verificationGasLimit }) =>
      Hex.concat(limit(verificationGasLimit), limit(postOpGasLimit)),
    read: readLimits
  },
  gas: {
    verification: 1_000n,
    unmetered: { perOp: 7_400n, perBundle: 12_500n },
    verificationGasLimit: (own) => own,
    paymasterPrefund: (_, { postOpGasLimit, verificationGasLimit }) => verificationGasLimit + postOpGasLimit,
    declared: ({ callGasLimit, verificationGasLimit }, payer) => {
      const settling = payer?.limits.postOpGasLimit ?? 0n
      return {
        verification: verificationGasLimit + (payer?.limits.verificationGasLimit ?? 0n),
        execution: callGasLimit + settling,
        inHand: Shared.held(Shared.held(callGasLimit + settling + Shared.innerReserve))
      }
    }
  },
  rpc: {
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
}
