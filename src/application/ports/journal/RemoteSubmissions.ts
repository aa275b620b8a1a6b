import type { Bytes32, Hex } from "../../../domain/primitives/Hex.js"
import type { AccountId } from "../Tenants.js"
import type { OpRef } from "./OpRef.js"
import type { OpId } from "./Records.js"
import type { NonceSpace, OpSettlement } from "./Requests.js"
import type { LaneAccess } from "./Transactions.js"

/** Signed ops for an external bundler. */
export interface Handover {
  /** The node to query for the ops' outcomes. Sealed at rest: paths may hold keys. */
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  /** Number of a block before which none of them can have landed. */
  readonly since: bigint
  /** `signed`: the ABI encoding of the op with its signature. */
  readonly ops: ReadonlyArray<{ readonly opId: OpId; readonly userOpHash: Bytes32; readonly signed: Hex }>
}

/** An op seen on the chain outside of our transactions. */
export interface FoundInclusion extends OpSettlement {
  /** Its hash on the chain; possibly that of another version of its nonce. */
  readonly landedAs: Bytes32
  /** At settled depth: no watch is needed. */
  readonly final: boolean
}

/**
 * An op outside of our transactions: the data to find its outcome, and to offer it again where a remote bundler has it.
 */
export interface RemoteSubmission extends OpRef {
  readonly accountId: AccountId
  readonly space: NonceSpace
  readonly userOpHash: Bytes32
  readonly node: Pick<LaneAccess, "rpc" | "trust">
  readonly since: bigint
  /** Null: no bundler was given the op; it was seen on the chain, and stays here until it is settled. */
  readonly signed: Hex | null
  /** The bundler says that the op's element has failed: the op is offered to no bundler again. */
  readonly isRefused: boolean
  /** The transaction that included it, not known to be at settled depth; null: none. */
  readonly includedIn: Bytes32 | null
  /** Its hash on the chain. */
  readonly landedAs: Bytes32
}
