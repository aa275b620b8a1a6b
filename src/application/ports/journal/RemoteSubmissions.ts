import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"
import type { NonceSpace } from "./Requests.js"
import type { LaneAccess } from "./Transactions.js"

/** Accepted ops of a request that somebody else's bundler is given, signed. */
export interface RemoteSubmissionIntent {
  readonly requestId: string
  /** The node that will tell what became of them. Sealed at rest: keys sit in paths. */
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  /** Number of a block before which none of them can have landed. */
  readonly since: bigint
  /** `signed`: the ABI encoding of the op with its signature. */
  readonly ops: ReadonlyArray<{ readonly index: number; readonly signed: Hex }>
}

/** An op at a remote bundler: all that is needed to offer it again, and to find out what became of it. */
export interface RemoteSubmission extends OpRef {
  readonly accountId: AccountId
  readonly space: NonceSpace
  readonly userOpHash: Bytes32
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  readonly since: bigint
  readonly signed: Hex
  /** The transaction in which it landed, not yet at settled depth as far as is known; null: none. */
  readonly includedIn: Bytes32 | null
}
