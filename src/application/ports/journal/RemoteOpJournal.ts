import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type { JournalError } from "./JournalError.js"
import type { OpId } from "./Records.js"
import type { FoundInclusion, Handover, RemoteSubmission } from "./RemoteSubmissions.js"
import type { Affected } from "./Requests.js"
import type { Depth, Lane, LaneAccess } from "./Transactions.js"

/** Ops that an external bundler submits, or that others included. See `Journals`. */
export class RemoteOpJournal extends Context.Service<
  RemoteOpJournal,
  {
    /**
     * Hands ready ops of the lane to an external bundler: they are sent and exposed, in no transaction of ours. Returns
     * the ops handed over by this call or an earlier one. The other ops are not ready, or differ from the signed ones.
     */
    readonly handOver: (lane: Lane, handover: Handover) => Effect.Effect<ReadonlyArray<OpId>, JournalError>
    /** The bundler took ops that were handed over. Writes `submitted` for those without one. */
    readonly recordTaken: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<void, JournalError>
    /**
     * Records outcomes of ops that were handed over, or that others landed. Ops that are neither `accepted` nor `sent`
     * are ignored. Ops below settled depth stay watched at that node, unless an unsettled transaction of ours carries
     * them: then they are followed with it.
     */
    readonly recordInclusions: (
      authority: Address,
      chainId: bigint,
      ops: ReadonlyArray<FoundInclusion>,
      node: Pick<LaneAccess, "rpc" | "trust">
    ) => Effect.Effect<Affected, JournalError>
    /**
     * Landings of watched ops have vanished from the chain. The ops lose their outcomes, and their requests are not
     * final any more. Ops that a bundler has are `sent` again. The others are `accepted`, unwatched, and count as
     * signed: their bytes are public. Ignored once they were at settled depth.
     */
    readonly revertInclusions: (
      authority: Address,
      chainId: bigint,
      userOpHashes: ReadonlyArray<Bytes32>
    ) => Effect.Effect<Affected, JournalError>
    /** Landings of watched ops have reached settled depth; the watch ends. */
    readonly finaliseInclusions: (
      authority: Address,
      chainId: bigint,
      ops: ReadonlyArray<Depth & { readonly userOpHash: Bytes32 }>
    ) => Effect.Effect<void, JournalError>
    /**
     * Makes the lane's handed-over ops ready again, to be prepared again. `isDead`: none of the ops handed over can
     * land any more. The ops are not exposed then, and those whose elements have failed are abandoned. Ops in a
     * transaction of ours are ignored, and so are elements handed over since in another version.
     */
    readonly takeBack: (
      lane: Lane,
      userOpHashes: ReadonlyArray<Bytes32>,
      isDead: boolean
    ) => Effect.Effect<void, JournalError>
    /** Every watched op, in acceptance order: handed over, or landed by others, not taken back or settled. */
    readonly remoteSubmissions: Effect.Effect<ReadonlyArray<RemoteSubmission>, JournalError>
  }
>()("castellan/RemoteOpJournal") {}
