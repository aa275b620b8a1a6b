import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Address } from "../../domain/evm/Address.js"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"
import type { Version } from "../../domain/op/EntryPoint.js"
import type { FeePrices } from "../../domain/op/Fees.js"
import type { UserOperation } from "../../domain/op/UserOperation.js"
import type { ChainClient, Receipt } from "./ChainRpc.js"
import type { NetworkProfile } from "./Networks.js"
import type { Signer } from "./Signers.js"

/** One accepted, signed op. */
export interface SignedOp {
  /** Index of the request's element that it carries. */
  readonly index: number
  readonly op: UserOperation
  readonly userOpHash: Bytes32
}

/** What shall land together. */
export interface Bundle {
  readonly requestId: string
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  readonly version: Version
  readonly entryPoint: Address
  readonly ops: ReadonlyArray<SignedOp>
  /** Its EOA submits, pays and is the beneficiary. */
  readonly submitter: Signer
  readonly prices: FeePrices
  /** Wei that layer 1 may ask of the submitter for the transaction's data; 0 where it asks nothing. */
  readonly l1Fee: bigint
  /** Gas limit of the transaction. */
  readonly gasLimit: bigint
}

/** What the EntryPoint's logs say of one op. */
export interface OpOutcome {
  readonly success: boolean
  readonly txHash: Bytes32
  readonly revertData: Hex | null
}

export interface Landed {
  readonly receipt: Receipt
  /** By userOpHash; an op that is missing did not land. */
  readonly outcomes: ReadonlyMap<Bytes32, OpOutcome>
}

/**
 * - `rejected`: ops would fail in the bundle; nothing was sent. `dropped` has the revert data of each of them
 * - `signerRefused`, `signerUnavailable`: the submitter did not sign; nothing was sent
 * - `insufficientFunds`: the submitter can not pay `missing` wei; nothing was sent
 * - `nodeFailed`: the node could not be asked; nothing was sent
 * - `outcomeUnknown`: the transaction left, and is not confirmed in time
 */
export class BundlerError extends Data.TaggedError("BundlerError")<{
  readonly reason:
    | "rejected"
    | "signerRefused"
    | "signerUnavailable"
    | "insufficientFunds"
    | "nodeFailed"
    | "outcomeUnknown"
  readonly message: string
  readonly txHash: Bytes32 | null
  readonly missing: bigint
  readonly dropped: ReadonlyMap<Bytes32, Hex>
}> {}

/** Brings bundles of ops onto the chain. */
export class Bundler extends Context.Tag("castellan/Bundler")<
  Bundler,
  {
    /** Sends the bundle exactly once and waits for its outcome, at most the profile's receipt time-out. */
    readonly submit: (bundle: Bundle) => Effect.Effect<Landed, BundlerError>
  }
>() {}
