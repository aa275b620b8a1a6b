import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { StateOverride } from "./ChainRpc.js"

/**
 * A bundler could not be reached, or did not do the call.
 *
 * It refused the op, by the codes of ERC-7769:
 * - `validation` (-32500): wallet or EntryPoint reject it
 * - `paymaster` (-32501): its paymaster rejects it
 * - `opcode` (-32502): its validation breaks the rules of ERC-7562
 * - `expired` (-32503): outside of its time window, or too close to the end
 * - `throttled` (-32504), `stake` (-32505): sender, factory or paymaster is throttled or banned, or lacks stake
 * - `aggregator` (-32506): unsupported aggregator
 * - `signature` (-32507): invalid signature
 * - `deposit` (-32508): its paymaster's deposit is too low
 * - `reverted` (-32521): its call would revert
 * - `invalid` (-32602, -32600): fields of the op, its fees for example, are not accepted
 *
 * It did not process the call: `invalidUrl`, `forbidden` (the URL), `rateLimited` (HTTP 429 or its equivalents),
 * `unsupported` (no such method).
 *
 * The outcome is unknown: `unreachable` (no answer), `notAnRpc` (an unintelligible one), `other` (any other error).
 *
 * `message` holds of a URL at most scheme and host: paths may hold keys.
 */
export class BundlerRpcError extends Data.TaggedError("BundlerRpcError")<{
  readonly reason:
    | "validation"
    | "paymaster"
    | "opcode"
    | "expired"
    | "throttled"
    | "stake"
    | "aggregator"
    | "signature"
    | "deposit"
    | "reverted"
    | "invalid"
    | "invalidUrl"
    | "forbidden"
    | "rateLimited"
    | "unsupported"
    | "unreachable"
    | "notAnRpc"
    | "other"
  readonly origin: string
  readonly message: string
  readonly rpcCode?: number
}> {}

const unknown: ReadonlySet<BundlerRpcError["reason"]> = new Set(["unreachable", "notAnRpc", "other"])

/**
 * Whether a bundler that gave this answer to an op's first sending certainly does not have the op.
 *
 * @example BundlerRpc.isCertain({ reason: "unreachable" })
 * // false
 */
export const isCertain = ({ reason }: BundlerRpcError): boolean => !unknown.has(reason)

/** An op with the EntryPoint that it is for. */
export interface Offer {
  readonly version: Version
  readonly entryPoint: Address
  readonly op: UserOperation
}

/** An external ERC-4337 bundler (ERC-7769). */
export interface BundlerClient {
  /** Scheme and host of the bundler, the only parts of its URL that may be shown. */
  readonly origin: string
  /** `eth_chainId`. */
  readonly chainId: Effect.Effect<bigint, BundlerRpcError>
  /** `eth_supportedEntryPoints`. */
  readonly entryPoints: Effect.Effect<ReadonlyArray<Address>, BundlerRpcError>
  /** `eth_estimateUserOperationGas`: the lowest accepted preVerificationGas. `state`: its overrides. */
  readonly preVerificationGas: (
    offer: Offer,
    state: ReadonlyMap<Address, StateOverride>
  ) => Effect.Effect<bigint, BundlerRpcError>
  /**
   * `eth_sendUserOperation`, sent exactly once. The adapter never repeats it, since only the caller knows how to treat
   * a lost answer. Succeeds when the bundler already has this very op.
   */
  readonly send: (offer: Offer, userOpHash: Bytes32) => Effect.Effect<void, BundlerRpcError>
  /**
   * `eth_getUserOperationByHash`. Null: the bundler does not know the op, or does not say. `txHash`: the transaction
   * that the bundler says included the op; null: not yet. The answer is a hint, as trustworthy as the bundler.
   */
  readonly find: (
    userOpHash: Bytes32
  ) => Effect.Effect<{ readonly txHash: Bytes32 | null } | null, BundlerRpcError>
}

/** Connects to a URL's bundler. */
export class BundlerRpc extends Context.Service<
  BundlerRpc,
  {
    /** Returns the client of a URL that the operator names, without any traffic; one client per URL. */
    readonly connect: (url: string) => Effect.Effect<BundlerClient, BundlerRpcError>
  }
>()("castellan/BundlerRpc") {}
