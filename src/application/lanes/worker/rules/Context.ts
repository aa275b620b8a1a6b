import type * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type { Version } from "../../../../domain/erc4337/EntryPoint.js"
import type { FeePrices } from "../../../../domain/erc4337/gas/Fees.js"
import type { Percent } from "../../../../domain/erc4337/Percent.js"
import type { Address } from "../../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../../domain/primitives/Hex.js"
import type { Connection } from "../../../chain/Connection.js"
import type { ElementFailure } from "../../../failures/Elements.js"
import type { Failure } from "../../../failures/Failure.js"
import type { Payer, PayerRefusal } from "../../../payers/Payer.js"
import type { Op, Opening, OpId, PreparedOp, Unopened } from "../../../ports/journal/Records.js"
import type { LaneAccess } from "../../../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../../../ports/Signers.js"
import type { OpCall } from "../../../prepare/Call.js"

/** Types that a lane's worker shares with preparation: the settings of accepted requests, obstacles, and `Preparer`. */

interface Submission {
  readonly connection: Connection
  readonly access: LaneAccess
  /** The caller's buffers on a transaction's gas and price. */
  readonly buffers: { readonly transaction: Percent; readonly price: Percent }
}

/** Settings that a worker needs for transactions of the EOA itself. */
export interface DirectContext extends Submission {
  readonly kind: "direct"
  /** Holds the transaction's spending before the first signature under this nonce. */
  readonly bindHolds: (
    op: Extract<PreparedOp, { readonly kind: "direct" }>,
    nonce: bigint
  ) => Effect.Effect<void, PayerRefusal | Failure | Obstacle>
  readonly release: (op: PreparedOp) => Effect.Effect<void>
}

/** Settings of repriced transactions. */
export type RepricingContext = Omit<DirectContext, "release" | "bindHolds">

/** Settings that a worker needs for ops. */
export interface SubmissionContext extends Submission {
  readonly kind: "ops"
  readonly version: Version
  readonly entryPoint: Address
  readonly payer: Payer
  /** Aggregator whose signature replaces those of a transaction's ops; null: each op has its own. */
  readonly aggregator: Address | null
  /** Signers of these ops: the request's keys, or the deployer. */
  readonly keyOf: (address: Address) => Signer | null
  readonly deployer: Effect.Effect<Signer, Obstacle>
  /** Holds what the op may cost the submitting EOA, and its spending, before its first signature. */
  readonly bindHolds: (
    op: Exclude<PreparedOp, { readonly kind: "direct" }>,
    userOpHash: Bytes32
  ) => Effect.Effect<void, SignerError | PayerRefusal | Failure | Obstacle>
  /** Releases the holds of the failed op; those of signed ops stay. */
  readonly release: (op: PreparedOp) => Effect.Effect<void>
}

export type Context = SubmissionContext | DirectContext

/** Whether ops of these settings go to a remote bundler. */
export const isRemote = ({ connection, kind }: Pick<Context, "connection" | "kind">): boolean =>
  kind === "ops" && connection.profile.remoteBundler !== null

/** Cause for which an op cannot go now but may later. */
export interface Obstacle {
  readonly _tag: "Obstacle"
  readonly why: string
}

export const obstacle = (why: string): Obstacle => ({ _tag: "Obstacle", why })

export const asObstacle = (error: Obstacle | { readonly message: string }): Obstacle =>
  "why" in error ? error : obstacle(error.message)

export type Prepared =
  | { readonly _tag: "prepared"; readonly prepared: PreparedOp }
  | { readonly _tag: "failed"; readonly failure: ElementFailure }
  /** By a third party: the op landed, or its wallet exists. */
  | { readonly _tag: "done" }
  | Obstacle

/** Preparation for a lane's worker, by the functions that intake uses. */
export interface Preparer {
  /** Context of a request's ops, shared by all requests with the same settings. `chainId`: of its lane. */
  readonly contextOf: (
    request: Pick<Unopened, "contextDigest" | "requestId">,
    chainId: bigint
  ) => Effect.Effect<Context, Obstacle>
  /** Prepares ops again under the same nonces, at current state and prices. Ops missing in the result stay unchanged. */
  readonly again: (
    context: Context,
    ops: ReadonlyArray<Op>
  ) => Effect.Effect<ReadonlyMap<OpId, Prepared>, Obstacle>
  /** Likewise under new nonces, which are free according to journal and chain. */
  readonly anew: (
    context: Context,
    ops: ReadonlyArray<Op>
  ) => Effect.Effect<ReadonlyMap<OpId, Prepared>, Obstacle>
  readonly repricingOf: (
    requestId: string,
    chainId: bigint
  ) => Effect.Effect<{ readonly context: RepricingContext; readonly fillUnknown: boolean }, Obstacle>
  /**
   * Prepares due elements without ops under free nonces: as many as one preparation takes, none without its dependencies. By
   * request; a missing request waits for the others.
   */
  readonly open: (
    context: Context,
    requests: ReadonlyArray<Unopened>
  ) => Effect.Effect<ReadonlyMap<string, Result.Result<Opening, Obstacle>>, Obstacle>
  /** Calls without ops, due or not, by request; null: the body cannot be read here. */
  readonly unopened: (
    requestIds: ReadonlyArray<string>,
    chainId: bigint
  ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<OpCall> | null>, Obstacle>
  /** Decodes revert data of an op by its request's definitions. */
  readonly revertOf: (op: Op, data: Hex) => Effect.Effect<string>
}

/** Whether the block's base fee exceeds the op's price. */
export const isPricedOut = (
  { maxFeePerGas }: Pick<FeePrices, "maxFeePerGas">,
  baseFee: bigint | null
): boolean => baseFee !== null && maxFeePerGas < baseFee
