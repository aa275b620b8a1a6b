import * as BigInts from "effect/BigInt"
import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"
import * as Words from "../../primitives/Words.js"
import * as Shared from "./Shared.js"
import type { Layout, Spec } from "./Spec.js"

/** EntryPoint v0.6: a word per gas field, and a paymaster that shares verificationGasLimit. */

const layout: Layout = {
  struct: "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)",
  gasWords: (op) => [
    Words.uint(op.callGasLimit),
    Words.uint(op.verificationGasLimit),
    Words.uint(op.preVerificationGas),
    Words.uint(op.maxFeePerGas),
    Words.uint(op.maxPriorityFeePerGas)
  ],
  readRest: (tuple) => ({
    callGasLimit: Words.readUint(tuple, 128),
    verificationGasLimit: Words.readUint(tuple, 160),
    preVerificationGas: Words.readUint(tuple, 192),
    maxFeePerGas: Words.readUint(tuple, 224),
    maxPriorityFeePerGas: Words.readUint(tuple, 256),
    paymasterAndData: Words.readBytes(tuple, 288),
    signature: Words.readBytes(tuple, 320)
  })
}

const postOp = Keccak.selector("postOp(uint8,bytes,uint256)")

const paymasterSize = 20

const paymasterOf = (paymasterAndData: Hex.Hex): Address.Address =>
  Address.unsafe(Hex.slice(paymasterAndData, 0, paymasterSize))

export const v06: Spec = {
  address: Address.unsafe("0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789"),
  deploymentSalt: Hex.unsafe32(`0x${"00".repeat(32)}`),
  layout,
  functions: {
    ...Shared.functions(layout.struct),
    postOp: (context, actualGasCost) =>
      Words.call(postOp, [Words.uint(0n), Words.bytes(context), Words.uint(actualGasCost)])
  },
  hash: Shared.hash,
  objection: ({ paymasterAndData }) =>
    paymasterAndData !== Hex.empty && Hex.size(paymasterAndData) < paymasterSize
      ? `paymasterAndData must be empty or of at least ${paymasterSize} bytes`
      : null,
  hasBegun: (validAfter, timestamp) => timestamp >= validAfter,
  paymaster: {
    size: paymasterSize,
    names: "paymaster",
    write: () => Hex.empty,
    read: () => ({ verificationGasLimit: 0n, postOpGasLimit: 0n })
  },
  gas: {
    verification: 2_500n,
    unmetered: { perOp: 9_000n, perBundle: 11_500n },
    // The paymaster's validation shares it, and its postOp gets the same amount again.
    verificationGasLimit: (own, { postOpGasLimit, verificationGasLimit }) =>
      BigInts.max(own + verificationGasLimit, postOpGasLimit),
    // Its postOp may run twice, with the same amount each.
    paymasterPrefund: ({ verificationGasLimit }) => 2n * verificationGasLimit,
    declared: ({ callGasLimit, verificationGasLimit }, paymaster) => {
      const twice = paymaster?.settles === true ? 2n * verificationGasLimit : 0n
      return {
        verification: verificationGasLimit,
        execution: callGasLimit + twice,
        // It demands verificationGasLimit again before it runs the call.
        inHand: Shared.held(Shared.held(callGasLimit) + verificationGasLimit + Shared.innerReserve + twice)
      }
    }
  },
  rpc: {
    write: ({ initCode, paymasterAndData }) => ({ initCode, paymasterAndData }),
    readPaymaster: ({ paymasterAndData }) =>
      paymasterAndData == null || Hex.size(paymasterAndData) < paymasterSize
        ? null
        : {
            paymaster: paymasterOf(paymasterAndData),
            data: Hex.slice(paymasterAndData, paymasterSize),
            verificationGasLimit: null,
            postOpGasLimit: null
          }
  }
}
