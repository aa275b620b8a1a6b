import type * as Redacted from "effect/Redacted"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { SignerRef } from "../Signers.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"

/** The ordered stream of transactions of one EOA on one chain. */
export interface Lane {
  readonly chainId: bigint
  readonly signer: Address
}

/** Names a lane in maps, locks and logs: `8453:0xf39F…`. */
export type LaneKey = `${bigint}:${Address}`

export const laneKey = ({ chainId, signer }: Lane): LaneKey => `${chainId}:${signer}`

/** The block of an event, and its depth. */
export interface Depth {
  readonly blockNumber: bigint
  /** Blocks from that block to the chain's head, including both; a lower bound, as of the last reading. */
  readonly confirmations: number
}

/** Access to a lane that survives its caller, possibly in another process. */
export interface LaneAccess {
  readonly accountId: AccountId
  /** The lane's key: one of the account's, the service's EOA, or the operator's treasury. */
  readonly key: SignerRef | "serviceEoa" | "treasury"
  /** The node; `trust` is its author. Sealed at rest: paths may hold keys. Null: sealed under another key. */
  readonly rpc: Redacted.Redacted<string> | null
  readonly trust: "caller" | "operator"
}

/**
 * The target of a transaction: the EntryPoint of its ops, or the signer's own transaction (`direct`). Null: the
 * transaction only fills a nonce and calls nothing.
 *
 * Code in a transaction of one route could submit the bound ops of a pending transaction of another route, since the
 * signer is tx.origin there too. So all in-flight transactions of a lane have one route.
 */
export type Route = Address | "direct" | null

/** One set of bytes signed for a nonce. */
export interface TransactionVersion {
  readonly txHash: Bytes32
  readonly raw: Hex
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

export interface TransactionSettlement extends Lane, Depth {
  readonly nonce: bigint
  readonly txHash: Bytes32
  readonly success: boolean
  readonly blockHash: Bytes32
}

/** A nonce of a lane, with all versions signed for it. */
export interface TransactionRecord extends Lane {
  readonly nonce: bigint
  readonly access: LaneAccess
  /**
   * `signed`: may have been sent, not known to be mined. `mined`: in a block below settled depth. `settled`: at settled
   * depth. `external`: a foreign transaction used the nonce.
   */
  readonly state: "signed" | "mined" | "settled" | "external"
  /** Oldest first; never empty. */
  readonly versions: ReadonlyArray<TransactionVersion>
  /** Unix milliseconds at which the newest version was signed. */
  readonly signedAt: number
  readonly ops: ReadonlyArray<
    OpRef & {
      readonly userOpHash: Bytes32
      readonly entryPoint: Address
      readonly wallet: Address
      /** The key of its nonce. */
      readonly key: bigint
    }
  >
  readonly direct: string | null
  readonly mined: {
    readonly txHash: Bytes32
    readonly success: boolean
    readonly blockNumber: bigint
    readonly blockHash: Bytes32
  } | null
}
