import * as Either from "effect/Either"
import * as Eip712 from "../evm/Eip712.js"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Uint from "../primitives/Uint.js"
import * as Words from "../primitives/Words.js"
import type { Version } from "./EntryPoint.js"

/**
 * A UserOperation of ERC-4337, of any EntryPoint version: the fields as v0.6 names them. In the packed layout of
 * v0.7 and v0.8 the limits and the fees share a word each, and paymasterAndData begins with the paymaster's own
 * limits; it is kept packed here. Gas in gas units, fees in wei per gas unit.
 */
export interface UserOperation {
  /** The wallet. */
  readonly sender: Address.Address
  /** 192-bit key and 64-bit sequence. */
  readonly nonce: bigint
  /** Empty for a deployed wallet, else factory (20 bytes) ++ its calldata. */
  readonly initCode: Hex.Hex
  /** What the EntryPoint calls the wallet with. */
  readonly callData: Hex.Hex
  /** Gas of that call. uint256 in v0.6, uint128 from v0.7 on; the EntryPoint takes at most a uint120. */
  readonly callGasLimit: bigint
  /** Gas of creation and validation together. Width as of callGasLimit. */
  readonly verificationGasLimit: bigint
  /** Gas paid for what the EntryPoint cannot measure. uint256; the EntryPoint takes at most a uint120. */
  readonly preVerificationGas: bigint
  /** Width as of callGasLimit. */
  readonly maxFeePerGas: bigint
  /** Width as of callGasLimit. */
  readonly maxPriorityFeePerGas: bigint
  /** Empty when the wallet pays. v0.6: paymaster (20) ++ data; from v0.7 on: paymaster (20) ++ limits (16 + 16) ++ data. */
  readonly paymasterAndData: Hex.Hex
  /** Not part of the hash. */
  readonly signature: Hex.Hex
}

const structV06 = "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
const structPacked = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"

const selectors = (struct: string) => ({
  handleOps: Keccak.selector(`handleOps(${struct}[],address)`),
  handleAggregatedOps: Keccak.selector(`handleAggregatedOps((${struct}[],address,bytes)[],address)`),
  validateUserOp: Keccak.selector(`validateUserOp(${struct},bytes32,uint256)`)
})
const selectorsV06 = selectors(structV06)
const selectorsPacked = selectors(structPacked)
const selectorsOf = (version: Version) => (version === "v0.6" ? selectorsV06 : selectorsPacked)

/** Two uint128 in one word. */
const pair = (high: bigint, low: bigint): string =>
  Words.uint((BigInt.asUintN(128, high) << 128n) | BigInt.asUintN(128, low))

/** The words between callData and paymasterAndData. */
const gasWords = (version: Version, op: UserOperation): ReadonlyArray<string> =>
  version === "v0.6"
    ? [
        Words.uint(op.callGasLimit),
        Words.uint(op.verificationGasLimit),
        Words.uint(op.preVerificationGas),
        Words.uint(op.maxFeePerGas),
        Words.uint(op.maxPriorityFeePerGas)
      ]
    : [
        pair(op.verificationGasLimit, op.callGasLimit),
        Words.uint(op.preVerificationGas),
        pair(op.maxPriorityFeePerGas, op.maxFeePerGas)
      ]

/** Its type, as it stands in the signatures of functions. */
export const structOf = (version: Version): string => (version === "v0.6" ? structV06 : structPacked)

/** The op's struct inside a tuple: UserOperation of v0.6, PackedUserOperation of v0.7 and v0.8. */
export const part = (version: Version, op: UserOperation): Words.Part =>
  Words.dynamic([
    Words.address(op.sender),
    Words.uint(op.nonce),
    Words.bytes(op.initCode),
    Words.bytes(op.callData),
    ...gasWords(version, op),
    Words.bytes(op.paymasterAndData),
    Words.bytes(op.signature)
  ])

/**
 * Solidity's `abi.encode(userOp)` of that version's struct, so it begins with the offset 0x20. Integers wider than
 * their field are reduced to it: `fits` says beforehand whether they are.
 */
export const encode = (version: Version, op: UserOperation): Hex.Hex => Words.encode([part(version, op)])

/**
 * The op in `abi.encode(userOp)` of that version's struct. Strict: only the canonical encoding, the one that
 * `encode` gives for the result, is accepted, so that an op has one text and its parts no hidden bytes.
 */
export const decode = (version: Version, encoded: Hex.Hex): Either.Either<UserOperation, string> => {
  const cursor = Words.readTail(Words.read(encoded), 0)
  const op: UserOperation = {
    sender: Words.readAddress(cursor, 0),
    nonce: Words.readUint(cursor, 32),
    initCode: Words.readBytes(cursor, 64),
    callData: Words.readBytes(cursor, 96),
    ...(version === "v0.6" ? readGas(cursor) : readPackedGas(cursor))
  }
  return encode(version, op) === encoded
    ? Either.right(op)
    : Either.left(`expected abi.encode of the UserOperation struct of EntryPoint ${version}`)
}

const readGas = (cursor: Words.Cursor) => ({
  callGasLimit: Words.readUint(cursor, 128),
  verificationGasLimit: Words.readUint(cursor, 160),
  preVerificationGas: Words.readUint(cursor, 192),
  maxFeePerGas: Words.readUint(cursor, 224),
  maxPriorityFeePerGas: Words.readUint(cursor, 256),
  paymasterAndData: Words.readBytes(cursor, 288),
  signature: Words.readBytes(cursor, 320)
})

const readPackedGas = (cursor: Words.Cursor) => {
  const limits = Words.readUint(cursor, 128)
  const fees = Words.readUint(cursor, 192)
  return {
    callGasLimit: BigInt.asUintN(128, limits),
    verificationGasLimit: limits >> 128n,
    preVerificationGas: Words.readUint(cursor, 160),
    maxFeePerGas: BigInt.asUintN(128, fees),
    maxPriorityFeePerGas: fees >> 128n,
    paymasterAndData: Words.readBytes(cursor, 224),
    signature: Words.readBytes(cursor, 256)
  }
}

/** All fields but the signature, dynamic ones hashed. */
const hashedWords = (version: Version, op: UserOperation): ReadonlyArray<string> => [
  Words.address(op.sender),
  Words.uint(op.nonce),
  Words.bytes32(Keccak.hash(op.initCode)),
  Words.bytes32(Keccak.hash(op.callData)),
  ...gasWords(version, op),
  Words.bytes32(Keccak.hash(op.paymasterAndData))
]

const packedTypeHash = Keccak.hashText(
  "PackedUserOperation(address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits," +
    "uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData)"
)
const domainTypeHash = Keccak.hashText(
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
const domainName = Words.bytes32(Keccak.hashText("ERC4337"))
const domainVersion = Words.bytes32(Keccak.hashText("1"))

/**
 * The ERC-4337 userOpHash, as `getUserOpHash` of that EntryPoint gives it: v0.6 and v0.7
 * keccak256(abi.encode(keccak256(hashed fields), entryPoint, chainId)), v0.8 the EIP-712 digest in the domain
 * ("ERC4337", "1", chainId, entryPoint). The signature is no part of it.
 *
 * Does not hold for EIP-7702 accounts of v0.8 (initCode beginning with 0x7702), whose hash depends on chain state:
 * `fits` refuses them.
 */
export const hash = (
  version: Version,
  entryPoint: Address.Address,
  chainId: bigint,
  op: UserOperation
): Hex.Bytes32 => {
  const fields = hashedWords(version, op)
  if (version !== "v0.8") {
    const inner = Words.bytes32(Keccak.hash(Words.encode(fields)))
    return Keccak.hash(Words.encode([inner, Words.address(entryPoint), Words.uint(chainId)]))
  }
  const domainSeparator = Eip712.hashStruct(domainTypeHash, [
    domainName,
    domainVersion,
    Words.uint(chainId),
    Words.address(entryPoint)
  ])
  return Eip712.digest(domainSeparator, Eip712.hashStruct(packedTypeHash, fields))
}

/** Calldata of `handleOps(ops, beneficiary)` of that version's EntryPoint. */
export const handleOps = (
  version: Version,
  ops: ReadonlyArray<UserOperation>,
  beneficiary: Address.Address
): Hex.Hex =>
  Words.call(selectorsOf(version).handleOps, [
    Words.array(ops.map((op) => part(version, op))),
    Words.address(beneficiary)
  ])

/** The ops of one bundle whose wallets name the same aggregator, in order. */
export interface AggregatedOps {
  readonly ops: ReadonlyArray<UserOperation>
  /** Zero: none, each op is signed for itself, as with `handleOps`. */
  readonly aggregator: Address.Address
  /** What the aggregator verifies in the place of the ops' own signatures. */
  readonly signature: Hex.Hex
}

/** Calldata of `handleAggregatedOps(UserOpsPerAggregator[], beneficiary)` of that version's EntryPoint. */
export const handleAggregatedOps = (
  version: Version,
  groups: ReadonlyArray<AggregatedOps>,
  beneficiary: Address.Address
): Hex.Hex =>
  Words.call(selectorsOf(version).handleAggregatedOps, [
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

/** Calldata of the wallet's `validateUserOp(op, userOpHash, 0)`, as an EntryPoint of that version calls it. */
export const validateCall = (version: Version, op: UserOperation, userOpHash: Hex.Bytes32): Hex.Hex =>
  Words.call(selectorsOf(version).validateUserOp, [
    part(version, op),
    Words.bytes32(userOpHash),
    Words.uint(0n)
  ])

/** The 20 bytes, zero-padded, that mark the initCode of an EIP-7702 account from v0.8 on. */
const eip7702Marker = "0x7702".padEnd(42, "0")
const isEip7702 = (initCode: Hex.Hex): boolean => initCode.slice(0, 42).padEnd(42, "0") === eip7702Marker

/** The 16 bytes at byte `from` of paymasterAndData, as an integer. */
const limitAt = (paymasterAndData: Hex.Hex, from: number): bigint =>
  BigInt(`0x${paymasterAndData.slice(2 + from * 2, 2 + (from + 16) * 2)}`)

const paymasterProblem = (version: Version, data: Hex.Hex): string | undefined => {
  if (data === Hex.empty) return undefined
  const least = version === "v0.6" ? 20 : 52
  if (Hex.size(data) < least) return `paymasterAndData must be empty or of at least ${least} bytes`
  if (version === "v0.6") return undefined
  if (version === "v0.8" && Address.fromWord(data.slice(0, 42)) === Address.zero)
    return "the paymaster must not be the zero address"
  return [20, 36].every((from) => Uint.fits(limitAt(data, from), 120))
    ? undefined
    : "the paymaster's gas limits do not fit in 120 bits"
}

/**
 * Whether the EntryPoint can take the op at all, whatever wallet and paymaster say: nonce within 256 bits, every gas
 * limit and fee within 120 (else AA94), initCode empty or at least a factory's 20 bytes, paymasterAndData empty or
 * with all its fixed fields (else AA93), and on v0.8 no zero paymaster (else AA98) and no EIP-7702 marker. `Left`
 * says what is wrong.
 */
export const fits = (version: Version, op: UserOperation): Either.Either<void, string> => {
  if (!Uint.fits(op.nonce, 256)) return Either.left("nonce does not fit in 256 bits")
  for (const field of gasFields)
    if (!Uint.fits(op[field], 120)) return Either.left(`${field} does not fit in 120 bits`)
  if (op.initCode !== Hex.empty && Hex.size(op.initCode) < 20)
    return Either.left("initCode must be empty or of at least 20 bytes")
  if (version === "v0.8" && isEip7702(op.initCode)) return Either.left("EIP-7702 accounts are not supported")
  const problem = paymasterProblem(version, op.paymasterAndData)
  return problem === undefined ? Either.right(undefined) : Either.left(problem)
}

const gasFields = [
  "callGasLimit",
  "verificationGasLimit",
  "preVerificationGas",
  "maxFeePerGas",
  "maxPriorityFeePerGas"
] as const
