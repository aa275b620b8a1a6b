import type * as Address from "../../primitives/Address.js"
import type * as Hex from "../../primitives/Hex.js"
import type * as Words from "../../primitives/Words.js"
import type { GasFields, PaymasterLimits, UserOperation } from "./Op.js"

/**
 * All differences between versions of the EntryPoint. Gas in gas units; figures of the contract's own code are measured on
 * anvil.
 */
export interface Spec {
  /** Address of the reference EntryPoint, the same on every chain (eth-infinitism releases). */
  readonly address: Address.Address
  /** The salt with which the deterministic deployer puts it there. */
  readonly deploymentSalt: Hex.Bytes32
  readonly layout: Layout
  readonly functions: Functions
  /** The userOpHash; `fields` are the op's fields but the signature as words, dynamic ones hashed. */
  readonly hash: (
    domain: { readonly entryPoint: Address.Address; readonly chainId: bigint },
    fields: ReadonlyArray<string>
  ) => Hex.Bytes32
  /** Objection of this EntryPoint to the op, in addition to the rules of all versions; null: none. */
  readonly objection: (op: Pick<UserOperation, "initCode" | "paymasterAndData">) => string | null
  /** Whether a window that begins at `validAfter` has begun at `timestamp`. Without a beginning (0) it always has. */
  readonly hasBegun: (validAfter: bigint, timestamp: bigint) => boolean
  readonly paymaster: PaymasterFields
  readonly gas: GasRules
  readonly rpc: RpcMembers
}

/** The op's struct. All versions begin it with sender, nonce, initCode and callData. */
export interface Layout {
  /** Its type in function signatures. */
  readonly struct: string
  /** The words between callData and paymasterAndData. Integers wider than their field are reduced to it. */
  readonly gasWords: (op: GasFields) => ReadonlyArray<string>
  /** The fields behind callData. */
  readonly readRest: (
    tuple: Words.Cursor
  ) => GasFields & Pick<UserOperation, "paymasterAndData" | "signature">
}

/** Selectors of the functions that take an op. */
export interface Functions {
  readonly handleOps: Hex.Hex
  readonly handleAggregatedOps: Hex.Hex
  /** Of the wallet. */
  readonly validateUserOp: Hex.Hex
  /** Of the paymaster. */
  readonly validatePaymasterUserOp: Hex.Hex
  /** Of the aggregator (IAggregator). */
  readonly validateUserOpSignature: Hex.Hex
  readonly aggregateSignatures: Hex.Hex
  readonly validateSignatures: Hex.Hex
  /** Calldata of the paymaster's postOp after a successful call; wei, and wei per gas unit. */
  readonly postOp: (context: Hex.Hex, actualGasCost: bigint, feePerGas: bigint) => Hex.Hex
}

/** The fields of paymasterAndData between the paymaster's address (20 bytes) and its data. */
export interface PaymasterFields {
  /** Bytes in front of the data, the address included. */
  readonly size: number
  /** The fields in front of the data, for errors. */
  readonly names: string
  /** Limits wider than their field are reduced to it. */
  readonly write: (limits: PaymasterLimits) => Hex.Hex
  /** Of a paymasterAndData of at least `size` bytes; zero where the version has none. */
  readonly read: (paymasterAndData: Hex.Hex) => PaymasterLimits
}

/** Gas that an op may use at its limits, and the gas that must be in hand for that. */
export interface Declared {
  /** While it is validated. */
  readonly verification: bigint
  /** While its call and its paymaster's postOp run, */
  readonly execution: bigint
  /** and the gas that the EntryPoint demands before that (AA95), through the two calls above the wallet's. */
  readonly inHand: bigint
}

export interface GasRules {
  /** Gas within verificationGasLimit that the lens does not measure: copying and hashing the op. */
  readonly verification: bigint
  /** Gas that it uses and does not meter: around one op, and once per bundle. */
  readonly unmetered: { readonly perOp: bigint; readonly perBundle: bigint }
  /** verificationGasLimit of an op whose own validation needs `own`; limits of 0: no paymaster. */
  readonly verificationGasLimit: (own: bigint, paymaster: PaymasterLimits) => bigint
  /** Gas that the op's paymaster may use in addition to the op's own limits, charged in advance. */
  readonly paymasterPrefund: (
    op: Pick<UserOperation, "verificationGasLimit">,
    paymaster: PaymasterLimits
  ) => bigint
  /** `paymaster` null: the wallet pays. `settles`: its postOp may be called. */
  readonly declared: (
    op: Pick<UserOperation, "callGasLimit" | "verificationGasLimit">,
    paymaster: { readonly limits: PaymasterLimits; readonly settles: boolean } | null
  ) => Declared
}

/** The members of ERC-7769's and ERC-7677's JSON that the versions do not share. */
export interface RpcMembers {
  /** Of an op that fits the EntryPoint: its initCode and paymasterAndData. */
  readonly write: (
    op: Pick<UserOperation, "initCode" | "paymasterAndData">
  ) => Readonly<Record<string, string>>
  /** Of the answer of a paymaster's service; null when a member is missing. */
  readonly readPaymaster: (answer: PaymasterAnswer) => PaymasterParts | null
}

/** Answer of a paymaster's service, of any version. */
export interface PaymasterAnswer {
  readonly paymasterAndData?: Hex.Hex | null | undefined
  readonly paymaster?: Address.Address | null | undefined
  readonly paymasterData?: Hex.Hex | null | undefined
  readonly paymasterVerificationGasLimit?: bigint | null | undefined
  readonly paymasterPostOpGasLimit?: bigint | null | undefined
}

/** The paymaster's part of an op, out of such an answer; a limit of null: the service names none. */
export interface PaymasterParts {
  readonly paymaster: Address.Address
  readonly data: Hex.Hex
  readonly verificationGasLimit: bigint | null
  readonly postOpGasLimit: bigint | null
}
