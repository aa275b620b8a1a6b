import * as Result from "effect/Result"
import type * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Uint from "../primitives/Uint.js"
import * as Words from "../primitives/Words.js"
import { EntryPointSpec, type Version } from "./entrypoint/EntryPointSpec.js"
import type { UserOperation } from "./entrypoint/Op.js"

export type { UserOperation }

/**
 * Its type in function signatures.
 *
 * @example UserOperation.structOf("v0.7")
 * // "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
 */
export const structOf = (version: Version): string => EntryPointSpec[version].layout.struct

/**
 * The op's struct inside a tuple: UserOperation of v0.6, PackedUserOperation of v0.7 and v0.8.
 *
 * @example UserOperation.part("v0.7", op).tail.length / 64
 * // 13
 */
export const part = (version: Version, op: UserOperation): Words.Part =>
  Words.dynamic([
    Words.address(op.sender),
    Words.uint(op.nonce),
    Words.bytes(op.initCode),
    Words.bytes(op.callData),
    ...EntryPointSpec[version].layout.gasWords(op),
    Words.bytes(op.paymasterAndData),
    Words.bytes(op.signature)
  ])

/**
 * Solidity's `abi.encode(userOp)` of that version's struct, so it begins with the offset 0x20. Integers wider than
 * their field are reduced to it: check with `fits` first.
 *
 * @example UserOperation.decode("v0.7", UserOperation.encode("v0.7", op))
 * // Result.succeed(op)
 */
export const encode = (version: Version, op: UserOperation): Hex.Hex => Words.encode([part(version, op)])

/**
 * The op in `abi.encode(userOp)` of that version's struct. Strict: accepts only the canonical encoding, `encode` of the
 * result, so that an op has one text and its parts no hidden bytes.
 *
 * @example Result.getOrThrow(Result.flip(UserOperation.decode("v0.7", Hex.empty)))
 * // "expected abi.encode of the UserOperation struct of EntryPoint v0.7"
 */
export const decode = (version: Version, encoded: Hex.Hex): Result.Result<UserOperation, string> => {
  const cursor = Words.readTail(Words.read(encoded), 0)
  const op: UserOperation = {
    sender: Words.readAddress(cursor, 0),
    nonce: Words.readUint(cursor, 32),
    initCode: Words.readBytes(cursor, 64),
    callData: Words.readBytes(cursor, 96),
    ...EntryPointSpec[version].layout.readRest(cursor)
  }
  return encode(version, op) === encoded
    ? Result.succeed(op)
    : Result.fail(`expected abi.encode of the UserOperation struct of EntryPoint ${version}`)
}

/** All fields but the signature, dynamic ones hashed. */
const hashedWords = (version: Version, op: UserOperation): ReadonlyArray<string> => [
  Words.address(op.sender),
  Words.uint(op.nonce),
  Words.bytes32(Keccak.hash(op.initCode)),
  Words.bytes32(Keccak.hash(op.callData)),
  ...EntryPointSpec[version].layout.gasWords(op),
  Words.bytes32(Keccak.hash(op.paymasterAndData))
]

/**
 * The ERC-4337 userOpHash, as `getUserOpHash` of that EntryPoint gives it. It does not cover the signature.
 *
 * Does not hold for EIP-7702 accounts of v0.8 (initCode beginning with 0x7702), whose hash depends on chain state:
 * `fits` refuses them.
 *
 * @example UserOperation.hash("v0.7", EntryPoint.canonical["v0.7"], 1n, {
 *   sender: Address.zero, nonce: 0n, initCode: Hex.empty, callData: Hex.empty, callGasLimit: 50_000n,
 *   verificationGasLimit: 100_000n, preVerificationGas: 21_000n, maxFeePerGas: 2_000_000_000n,
 *   maxPriorityFeePerGas: 1_000_000_000n, paymasterAndData: Hex.empty, signature: Hex.empty
 * })
 * // "0xdd6bbe3d809530433c38fa02f322c91d709418cc06f58af6174c9479d20872ab"
 */
export const hash = (
  version: Version,
  entryPoint: Address.Address,
  chainId: bigint,
  op: UserOperation
): Hex.Bytes32 => EntryPointSpec[version].hash({ entryPoint, chainId }, hashedWords(version, op))

/**
 * Calldata of `handleOps(ops, beneficiary)` of that version's EntryPoint.
 *
 * @example UserOperation.handleOps("v0.7", [], Address.zero).slice(0, 10)
 * // "0x765e827f"
 */
export const handleOps = (
  version: Version,
  ops: ReadonlyArray<UserOperation>,
  beneficiary: Address.Address
): Hex.Hex =>
  Words.call(EntryPointSpec[version].functions.handleOps, [
    Words.array(ops.map((op) => part(version, op))),
    Words.address(beneficiary)
  ])

/** The ops of one bundle whose wallets name the same aggregator, in order. */
export interface AggregatedOps {
  readonly ops: ReadonlyArray<UserOperation>
  /** Zero: none, each op is signed for itself, as with `handleOps`. */
  readonly aggregator: Address.Address
  /** Signature that the aggregator verifies instead of the ops' own. */
  readonly signature: Hex.Hex
}

/**
 * Calldata of `handleAggregatedOps(UserOpsPerAggregator[], beneficiary)` of that version's EntryPoint.
 *
 * @example UserOperation.handleAggregatedOps("v0.7", [], Address.zero).slice(0, 10)
 * // "0xdbed18e0"
 */
export const handleAggregatedOps = (
  version: Version,
  groups: ReadonlyArray<AggregatedOps>,
  beneficiary: Address.Address
): Hex.Hex =>
  Words.call(EntryPointSpec[version].functions.handleAggregatedOps, [
    Words.array(
      groups.map(({ aggregator, ops, signature }) =>
        Words.dynamic([
          Words.array(ops.map((op) => part(version, op))),
          Words.address(aggregator),
          Words.bytes(signature)
        ])
      )
    ),
    Words.address(beneficiary)
  ])

/**
 * Calldata of the wallet's `validateUserOp(op, userOpHash, 0)`, as an EntryPoint of that version calls it.
 *
 * @example UserOperation.validateCall("v0.7", op, Salt.hash("alice")).slice(0, 10)
 * // "0x19822f7c"
 */
export const validateCall = (version: Version, op: UserOperation, userOpHash: Hex.Bytes32): Hex.Hex =>
  Words.call(EntryPointSpec[version].functions.validateUserOp, [
    part(version, op),
    Words.bytes32(userOpHash),
    Words.uint(0n)
  ])

/**
 * Whether the EntryPoint can take the op at all, whatever wallet and paymaster say. The nonce fits 256 bits, every gas
 * limit and fee 120 (otherwise AA94). initCode is empty or at least a factory's 20 bytes; paymasterAndData is empty or
 * has all its fixed fields (otherwise AA93). The version's own `objection` applies too. `Failure` names the problem.
 *
 * @example UserOperation.fits("v0.7", { ...op, maxFeePerGas: 2n ** 120n })
 * // Result.fail("maxFeePerGas does not fit in 120 bits")
 */
export const fits = (version: Version, op: UserOperation): Result.Result<void, string> => {
  if (!Uint.fits(op.nonce, 256)) return Result.fail("nonce does not fit in 256 bits")
  for (const field of gasFields)
    if (!Uint.fits(op[field], 120)) return Result.fail(`${field} does not fit in 120 bits`)
  if (op.initCode !== Hex.empty && Hex.size(op.initCode) < 20)
    return Result.fail("initCode must be empty or of at least 20 bytes")
  const objection = EntryPointSpec[version].objection(op)
  return objection === null ? Result.succeed(undefined) : Result.fail(objection)
}

const gasFields = [
  "callGasLimit",
  "verificationGasLimit",
  "preVerificationGas",
  "maxFeePerGas",
  "maxPriorityFeePerGas"
] as const
