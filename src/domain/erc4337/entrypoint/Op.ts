import type * as Address from "../../primitives/Address.js"
import type * as Hex from "../../primitives/Hex.js"

/**
 * A UserOperation of ERC-4337, of any EntryPoint version: the fields as v0.6 names them. In the packed layout of
 * v0.7 and v0.8 the limits and the fees share a word each, and paymasterAndData begins with the paymaster's own
 * limits; it is kept packed here. Gas in gas units, fees in wei per gas unit.
 */
export interface UserOperation extends GasFields {
  /** The wallet. */
  readonly sender: Address.Address
  /** 192-bit key and 64-bit sequence. */
  readonly nonce: bigint
  /** Empty for a deployed wallet, otherwise factory (20 bytes) ++ its calldata. */
  readonly initCode: Hex.Hex
  /** Calldata of the EntryPoint's call to the wallet. */
  readonly callData: Hex.Hex
  /** Empty when the wallet pays. v0.6: paymaster (20) ++ data; from v0.7 on: paymaster (20) ++ limits (16 + 16) ++ data. */
  readonly paymasterAndData: Hex.Hex
  /** Not part of the hash. */
  readonly signature: Hex.Hex
}

/** The op's gas limits and fees. */
export interface GasFields {
  /** Gas of the wallet's call. uint256 in v0.6, uint128 from v0.7 on; the EntryPoint takes at most a uint120. */
  readonly callGasLimit: bigint
  /** Gas of creation and validation together. Width as of callGasLimit. */
  readonly verificationGasLimit: bigint
  /** Gas paid for what the EntryPoint cannot measure. uint256; the EntryPoint takes at most a uint120. */
  readonly preVerificationGas: bigint
  /** Width as of callGasLimit. */
  readonly maxFeePerGas: bigint
  /** Width as of callGasLimit. */
  readonly maxPriorityFeePerGas: bigint
}

/** Gas of the paymaster's own frames; a uint128 each, but the EntryPoint takes at most a uint120. */
export interface PaymasterLimits {
  readonly verificationGasLimit: bigint
  readonly postOpGasLimit: bigint
}
