import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"
import type { OpId } from "./Records.js"
import type { NonceSpace, OpSettlement } from "./Requests.js"
import type { LaneAccess } from "./Transactions.js"

/** Signed ops that somebody else's bundler is given. */
export interface Handover {
  /** The node that will tell what became of them. Sealed at rest: keys sit in paths. */
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  /** Number of a block before which none of them can have landed. */
  readonly since: bigint
  /** `signed`: the ABI encoding of the op with its signature. */
  readonly ops: ReadonlyArray<{ readonly opId: OpId; readonly userOpHash: Bytes32; readonly signed: Hex }>
}

/** An op that was seen on the chain, without a transaction of ours that tells of it. */
export interface FoundInclusion extends OpSettlement {
  /** The hash under which it landed: that of another version of its nonce perhaps. */
  readonly landedAs: Bytes32
  /** It is at settled depth: it need not be watched. */
  readonly final: boolean
}

/**
 * An op that no transaction of ours tells of: all that is needed to find out what became of it, and to offer it again where
 * a remote bundler has it.
 */
export interface RemoteSubmission extends OpRef {
  readonly accountId: AccountId
  readonly space: NonceSpace
  readonly userOpHash: Bytes32
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  readonly since: bigint
  /** Null: no bundler was given it; it was seen on the chain, and is here until that is for good. */
  readonly signed: Hex | null
  /** Its element has come to nothing, as the bundler said: nobody is to be given it any more. */
  readonly isRefused: boolean
  /** The transaction in which it landed, not yet at settled depth as far as is known; null: none. */
  readonly includedIn: Bytes32 | null
  /** The hash that the chain shows of it. */
  readonly landedAs: Bytes32
}
