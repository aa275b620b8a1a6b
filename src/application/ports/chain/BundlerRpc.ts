import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { StateOverride } from "./ChainRpc.js"

/**
 * A bundler could not be asked, or did not do what was asked.
 *
 * It refused the op, by the codes of ERC-7769:
 * - `validation` (-32500): wallet or EntryPoint reject it; `paymaster` (-32501): its paymaster does
 * - `opcode` (-32502): its validation does what the rules of ERC-7562 forbid
 * - `expired` (-32503): outside of its time window, or too close to the end
 * - `throttled` (-32504): sender, factory or paymaster is throttled or banned; `stake` (-32505): or has too little stake
 * - `aggregator` (-32506): unsupported; `signature` (-32507): invalid
 * - `deposit` (-32508): of its paymaster, too low
 * - `reverted` (-32521): its call would revert
 * - `invalid` (-32602, -32600): fields of the op, its fees for example, are not accepted
 *
 * It was not asked:
 * - `invalidUrl`, `forbidden`: the URL; `rateLimited`: HTTP 429 or its equivalents; `unsupported`: it has no such method
 *
 * Nobody knows:
 * - `unreachable`, `notAnRpc`: no answer, or none that makes sense; `other`: any other error object
 *
 * `message` never holds more of a URL than scheme and host: keys sit in paths.
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

/** Whether an op that was sent for the first time, and answered so, is certainly not in the bundler's hands. */
export const isCertain = ({ reason }: BundlerRpcError): boolean => !unknown.has(reason)

/** An op, and the EntryPoint that it is for. */
export interface Offer {
  readonly version: Version
  readonly entryPoint: Address
  readonly op: UserOperation
}

/** Somebody else's ERC-4337 bundler (ERC-7769). */
export interface BundlerClient {
  /** Scheme and host of the bundler: all of its URL that may be shown. */
  readonly origin: string
  /** `eth_chainId`. */
  readonly chainId: Effect.Effect<bigint, BundlerRpcError>
  /** `eth_supportedEntryPoints`. */
  readonly entryPoints: Effect.Effect<ReadonlyArray<Address>, BundlerRpcError>
  /** `eth_estimateUserOperationGas`: the least preVerificationGas that it takes. `state`: as its simulation shall see it. */
  readonly preVerificationGas: (
    offer: Offer,
    state: ReadonlyMap<Address, StateOverride>
  ) => Effect.Effect<bigint, BundlerRpcError>
  /**
   * `eth_sendUserOperation`, sent exactly once: never repeated by the adapter, since only the caller knows what a lost
   * answer means. That the bundler has this very op already is no error.
   */
  readonly send: (offer: Offer, userOpHash: Bytes32) => Effect.Effect<void, BundlerRpcError>
  /**
   * `eth_getUserOperationByHash`: what the bundler says of an op. Null: it does not know it, or does not tell. `txHash`:
   * where it says that the op landed; null: not yet. A hint, as good as the bundler.
   */
  readonly find: (
    userOpHash: Bytes32
  ) => Effect.Effect<{ readonly txHash: Bytes32 | null } | null, BundlerRpcError>
}

/** Connects to the bundler of a URL. */
export class BundlerRpc extends Context.Service<
  BundlerRpc,
  {
    /** The client of a URL that the operator names, made without any traffic. One client for each URL. */
    readonly connect: (url: string) => Effect.Effect<BundlerClient, BundlerRpcError>
  }
>()("castellan/BundlerRpc") {}
