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

/** The block that something is in, and how deep that is. */
export interface Depth {
  readonly blockNumber: bigint
  /** Blocks from that one to the head of the chain, both counted: so many at least, when it was seen. */
  readonly confirmations: number
}

/** How a lane's work goes on when nobody waits for it any more, in another process perhaps. */
export interface LaneAccess {
  readonly accountId: AccountId
  /** The lane's key: one of the account's, or the service's own EOA. */
  readonly key: SignerRef | "serviceEoa"
  /** The node, and who named it. Sealed at rest: keys sit in paths. Null: it was sealed under another key. */
  readonly rpc: Redacted.Redacted<string> | null
  readonly trust: "caller" | "operator"
}

/**
 * What a transaction calls: the EntryPoint of the ops that it carries, or whatever the signer's own transaction calls
 * (`direct`). Null is a transaction that only fills a nonce, which calls nothing.
 *
 * Code that a transaction of one route runs could submit the bound ops of a pending transaction of another route: the
 * signer is tx.origin there too. So a lane has transactions of one route in flight at a time.
 */
export type Route = Address | "direct" | null

/** One set of bytes that was signed for a nonce. */
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

/** A nonce of a lane with everything that was signed for it. */
export interface TransactionRecord extends Lane {
  readonly nonce: bigint
  readonly access: LaneAccess
  /**
   * `signed`: perhaps sent, not mined as far as is known; `mined`: in a block, not yet at settled depth; `settled`: for
   * good; `external`: a transaction that is not castellan's used the nonce.
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
      /** Of its nonce. */
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
