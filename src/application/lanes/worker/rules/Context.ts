import type * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type { Version } from "../../../../domain/erc4337/EntryPoint.js"
import type { FeePrices } from "../../../../domain/erc4337/gas/Fees.js"
import type { Percent } from "../../../../domain/erc4337/Percent.js"
import type { Address } from "../../../../domain/primitives/Address.js"
import type { Hex } from "../../../../domain/primitives/Hex.js"
import type { Connection } from "../../../chain/Connection.js"
import type { ElementFailure } from "../../../failures/Elements.js"
import type { Payer } from "../../../payers/Payer.js"
import type { Op, Opening, OpId, PreparedOp, Unopened } from "../../../ports/journal/Records.js"
import type { LaneAccess } from "../../../ports/journal/Transactions.js"
import type { Signer, SignerError } from "../../../ports/Signers.js"
import type { OpCall } from "../../../prepare/Call.js"

interface Submission {
  readonly connection: Connection
  readonly access: LaneAccess
  /** The caller's buffers of what a transaction needs, and of its price. */
  readonly buffers: { readonly transaction: Percent; readonly price: Percent }
}

/** What a worker needs of the settings that transactions of the EOA itself were accepted with. */
export interface DirectContext extends Submission {
  readonly kind: "direct"
}

/** The same of ops. */
export interface OpContext extends Submission {
  readonly kind: "ops"
  readonly version: Version
  readonly entryPoint: Address
  readonly payer: Payer
  /** Whose signature over all ops of a transaction stands for their own; null: each has its own. */
  readonly aggregator: Address | null
  /** Who signs ops of these settings: the request's own keys, or the deployer. */
  readonly keyOf: (address: Address) => Signer | null
  readonly deployer: Effect.Effect<Signer, Obstacle>
  /** From here on what the submitting EOA may lose by the op is set aside for it, until its request is through. */
  readonly secure: (op: PreparedOp) => Effect.Effect<void, SignerError>
}

export type Context = OpContext | DirectContext

/** Ops of these settings go to somebody else's bundler. */
export const isRemote = ({ connection, kind }: Pick<Context, "connection" | "kind">): boolean =>
  kind === "ops" && connection.profile.remoteBundler !== null

/** Why an op can not go now, and may later. */
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
  /** By somebody else: it has landed, or its wallet stands. */
  | { readonly _tag: "done" }
  | Obstacle

/** What preparation does for a lane's worker: the functions by which requests are prepared before they are accepted. */
export interface Preparing {
  /** The context of a request's ops; one for all requests with the same settings. `chainId` is that of its lane. */
  readonly contextOf: (
    request: Pick<Unopened, "contextDigest" | "requestId">,
    chainId: bigint
  ) => Effect.Effect<Context, Obstacle>
  /** The ops again, under the same nonces, at the chain's present state and prices. What is missing in the answer stays as it is. */
  readonly again: (
    context: Context,
    ops: ReadonlyArray<Op>
  ) => Effect.Effect<ReadonlyMap<OpId, Prepared>, Obstacle>
  /** The same under new nonces, which are free as far as the journal and the chain say. */
  readonly anew: (
    context: Context,
    ops: ReadonlyArray<Op>
  ) => Effect.Effect<ReadonlyMap<OpId, Prepared>, Obstacle>
  /** What a request that prices waiting transactions anew asks for. */
  readonly repricingOf: (
    requestId: string,
    chainId: bigint
  ) => Effect.Effect<{ readonly context: DirectContext; readonly fillUnknown: boolean }, Obstacle>
  /**
   * Elements of these requests that are due and have no ops yet, as ops under such nonces: as many as are prepared at once, and
   * none without what it depends on. By request; one that is missing has to wait for the others.
   */
  readonly open: (
    context: Context,
    requests: ReadonlyArray<Unopened>
  ) => Effect.Effect<ReadonlyMap<string, Result.Result<Opening, Obstacle>>, Obstacle>
  /** Calls of these requests that have no ops yet, whenever they are due; null: its body can not be read here. */
  readonly unopened: (
    requestIds: ReadonlyArray<string>,
    chainId: bigint
  ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<OpCall> | null>, Obstacle>
  /** What revert data of an op say, by the definitions of its request. */
  readonly revertOf: (op: Op, data: Hex) => Effect.Effect<string>
}

/** Whether every gas unit of the block would cost more than the op pays. */
export const isPricedOut = (
  { maxFeePerGas }: Pick<FeePrices, "maxFeePerGas">,
  baseFee: bigint | null
): boolean => baseFee !== null && maxFeePerGas < baseFee
