import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { JournalError } from "./JournalError.js"
import type { OpRef } from "./OpRef.js"
import type { OpId } from "./Records.js"
import type { FoundInclusion, Handover, RemoteSubmission } from "./RemoteSubmissions.js"
import type { Affected } from "./Requests.js"
import type { Depth, Lane, LaneAccess } from "./Transactions.js"

/** Ops that somebody else's bundler submits, or that others included. See `Journals`. */
export class RemoteOpJournal extends Context.Service<
  RemoteOpJournal,
  {
    /**
     * Hands ready ops of the lane to somebody else's bundler: sent and exposed, in no transaction of ours. Gives the ops that
     * are handed over, by this call or by an earlier one. The others are not ready, or are not what was signed.
     */
    readonly handOver: (lane: Lane, handover: Handover) => Effect.Effect<ReadonlyArray<OpId>, JournalError>
    /** The bundler took ops that were handed over: `submitted` is told of those of which it was not told. */
    readonly recordTaken: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<void, JournalError>
    /**
     * What became of ops that were handed over, or that others landed. Ops that are not `accepted` or `sent` are ignored.
     * Those that are not at settled depth are to be watched at that node, unless a transaction of ours that is not settled
     * carries them: then they are followed with it.
     */
    readonly recordInclusions: (
      authority: Address,
      chainId: bigint,
      ops: ReadonlyArray<FoundInclusion>,
      node: Pick<LaneAccess, "rpc" | "trust">
    ) => Effect.Effect<Affected, JournalError>
    /**
     * Landings of ops that are watched have vanished from the chain: the ops are without outcomes, and their requests not
     * final any more. What a bundler has is `sent` again. The others are `accepted`, watched no more, and count as signed:
     * their bytes are public. Ignored once they were at settled depth.
     */
    readonly revertInclusions: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<Affected, JournalError>
    /** Landings of ops that are watched have reached settled depth: they need to be watched no more. */
    readonly finaliseInclusions: (
      authority: Address,
      chainId: bigint,
      ops: ReadonlyArray<Depth & { readonly userOpHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Ops of the lane that were handed over are ready again, and are to be prepared again. `isDead`: nothing that was handed
     * over can land any more. The ops are not exposed then, and those whose elements have failed are abandoned. Ops in a
     * transaction of ours are ignored.
     */
    readonly takeBack: (
      lane: Lane,
      ops: ReadonlyArray<OpRef>,
      isDead: boolean
    ) => Effect.Effect<void, JournalError>
    /** Every op that is to be watched: handed over, or landed as others told, and neither taken back nor landed for good; in the order of acceptance. */
    readonly remoteSubmissions: Effect.Effect<ReadonlyArray<RemoteSubmission>, JournalError>
  }
>()("castellan/RemoteOpJournal") {}
