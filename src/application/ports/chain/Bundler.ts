import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import type { Percent } from "../../../domain/erc4337/Percent.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { LaneAccess } from "../journal/Transactions.js"
import type { NetworkProfile } from "../NetworkProfile.js"
import type { Signer } from "../Signers.js"
import { type ChainClient, type ChainRpcError, isAnswer } from "./ChainRpc.js"

/** One accepted, signed op. */
export interface SignedOp {
  /** Index of the request's element that it carries. */
  readonly index: number
  readonly op: UserOperation
  readonly userOpHash: Bytes32
}

/** One signature in the place of those of a bundle's ops. */
export interface Aggregate {
  readonly aggregator: Address
  readonly signature: Hex
  /** Gas that the aggregator takes to verify it, for which no op is charged. */
  readonly gas: bigint
}

/** Ops of one request that shall land together, in this order. */
export interface Bundle {
  readonly requestId: string
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  /** How the lane goes on without the request. */
  readonly access: LaneAccess
  readonly version: Version
  readonly entryPoint: Address
  readonly ops: ReadonlyArray<SignedOp>
  /** Null: each op has its own signature. */
  readonly aggregate: Aggregate | null
  /** It shares its transaction with no other bundle: one that it shared has reverted. */
  readonly alone: boolean
  /** Its EOA submits, pays and is the beneficiary. */
  readonly submitter: Signer
  readonly prices: FeePrices
  /** Wei that layer 1 may ask of the submitter for the ops' data; 0 where it asks nothing. */
  readonly l1Fee: bigint
  /** Gas that one transaction may have, and the caller's buffer on what it needs. */
  readonly gasBound: bigint
  readonly gasOvershoot: Percent
}

/** What the EntryPoint's logs say of one op. */
export interface OpOutcome {
  readonly success: boolean
  readonly txHash: Bytes32
  readonly revertData: Hex | null
}

/** Why an op of a bundle was not sent. */
export interface Refusal {
  readonly message: string
  /** For now, or because one before it was not sent: worth another look, a bit later. */
  readonly passing: boolean
  /** Whoever refused it has the signed op, which anybody may submit until it can land no more. */
  readonly mayLand: boolean
}

/**
 * Nothing of the bundle was sent.
 *
 * - `rejected`: ops would fail in the bundle; `dropped` has the revert data of each of them
 * - `bundlerUnavailable`: somebody else's bundler cannot be used at present; `message` is the reason in words
 * - `refusedByBundler`: it cannot be used for this bundle, ever
 * - `signerRefused`, `signerUnavailable`: the submitter did not sign
 * - `insufficientFunds`: the submitter cannot pay `missing` wei
 * - `unpaid`: the submitter is the service's own EOA, and the ops would not give it back what the transaction costs
 * - `nodeUnreachable`: the node could not be asked, or says that it cannot answer now
 * - `nodeFailed`: the node answered with an error, or with what cannot be
 */
export class BundlerError extends Data.TaggedError("BundlerError")<{
  readonly reason:
    | "rejected"
    | "bundlerUnavailable"
    | "refusedByBundler"
    | "signerRefused"
    | "signerUnavailable"
    | "insufficientFunds"
    | "unpaid"
    | "nodeUnreachable"
    | "nodeFailed"
  readonly message: string
  readonly missing: bigint
  /** Gas that the transaction uses, and what the ops are charged for; null: `unpaid` for want of an answer, or no `unpaid`. */
  readonly gas: { readonly used: bigint; readonly charged: bigint } | null
  readonly dropped: ReadonlyMap<Bytes32, Hex>
}> {}

/** What a node's failure means for a bundle. */
export const ofNode = (error: ChainRpcError): BundlerError =>
  new BundlerError({
    reason: isAnswer(error) ? "nodeFailed" : "nodeUnreachable",
    message: error.message,
    missing: 0n,
    gas: null,
    dropped: new Map()
  })

/** Brings bundles of ops onto the chain. */
export class Bundler extends Context.Service<
  Bundler,
  {
    /**
     * Sends the bundle, alone or with those of other requests. When it returns, the journal has its ops as `sent`, and what
     * becomes of them is noted there, whoever waits for it. It returns those that somebody else's bundler refused: what may
     * land all the same is `sent` until it can land no more, the others are `accepted` as before. When it fails, all are.
     */
    readonly submit: (bundle: Bundle) => Effect.Effect<ReadonlyMap<Bytes32, Refusal>, BundlerError>
  }
>()("castellan/Bundler") {}
