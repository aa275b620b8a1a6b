import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type * as Inclusions from "../../chain/Inclusions.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import { laneKey } from "../../ports/journal/Transactions.js"
import type { Listener } from "../Settlement.js"
import type { AwaitedOp } from "./RemoteInclusions.js"
import * as RemoteInclusions from "./RemoteInclusions.js"

/** Records op inclusions in the journal: at the depth of an answer, at settled depth, and after a reorganisation undid them. */
export const make = ({
  drop,
  listener,
  offerAgain,
  remoteOpJournal
}: {
  readonly remoteOpJournal: RemoteOpJournal["Service"]
  readonly listener: Pick<Listener, "affected" | "reopened" | "notifyEvents">
  readonly drop: (entry: AwaitedOp) => void
  /** Queries the bundler for the op immediately, as after a first offer. */
  readonly offerAgain: (entry: AwaitedOp) => void
}) => {
  const finalise = (entry: AwaitedOp, blockNumber: bigint) => {
    const { chainId, signer } = RemoteInclusions.laneOf(entry)
    const { profile, submission } = entry
    const op = { userOpHash: submission.userOpHash, blockNumber, confirmations: profile.settledDepth }
    return Effect.andThen(
      remoteOpJournal.finaliseInclusions(signer, chainId, [op]),
      Effect.suspend(() => {
        drop(entry)
        return listener.notifyEvents
      })
    )
  }

  const revert = (entry: AwaitedOp) =>
    Effect.gen(function* () {
      const lane = RemoteInclusions.laneOf(entry)
      const { userOpHash } = entry.submission
      // First: if this write fails, the next poll misses the inclusion again.
      const affected = yield* remoteOpJournal.revertInclusions(lane.signer, lane.chainId, [userOpHash])
      entry.submission = { ...entry.submission, landedAs: userOpHash }
      entry.landed = null
      entry.missedSince = null
      entry.next = entry.submission.since
      offerAgain(entry)
      // It cannot be offered again: its request continues with its nonce.
      if (entry.offer === null) drop(entry)
      yield* listener.affected(lane, affected)
      yield* listener.reopened
    })

  return {
    /** Records an inclusion that is deep enough for an answer. */
    record: (entry: AwaitedOp, inclusion: Inclusions.Inclusion, head: Block) =>
      Effect.gen(function* () {
        const { profile, submission } = entry
        const { landedAs, userOpHash } = submission
        const { blockNumber, revertData, success, txHash } = inclusion
        entry.next = BigInts.min(entry.next, blockNumber)
        if (!RemoteInclusions.deepEnough(blockNumber, profile.confirmations, head)) return
        const final = RemoteInclusions.deepEnough(blockNumber, profile.settledDepth, head)
        const confirmations = final ? profile.settledDepth : profile.confirmations
        const lane = RemoteInclusions.laneOf(entry)
        const affected = yield* remoteOpJournal.recordInclusions(
          lane.signer,
          lane.chainId,
          [{ userOpHash, success, revertData, txHash, blockNumber, confirmations, landedAs, final }],
          submission.node
        )
        entry.isRecorded = true
        entry.landed = { txHash, block: inclusion }
        entry.checkedBlock = head.number
        entry.missedSince = null
        if (final) drop(entry)
        yield* listener.affected(lane, affected)
      }),
    /** Checks whether a recorded inclusion still exists, and whether it is at settled depth. */
    confirm: (entry: AwaitedOp, landed: NonNullable<AwaitedOp["landed"]>, head: Block) =>
      Effect.gen(function* () {
        if (head.number === entry.checkedBlock && entry.missedSince === null) return
        const seen = yield* RemoteInclusions.confirm(entry, landed, head)
        const { action, state } = seen.step
        if (action._tag === "withdraw") return yield* revert(entry)
        entry.checkedBlock = head.number
        entry.missedSince = state._tag === "mined" ? state.missedSince : null
        if (seen.block === null) return
        entry.landed = { txHash: landed.txHash, block: seen.block }
        if (action._tag === "finalise") yield* finalise(entry, seen.block.blockNumber)
      })
  }
}

/** Records ops that bundlers took and no block shows, in one write per lane. A failed write is repeated in the next round. */
export const recordSubmitted = (
  { recordTaken }: Pick<RemoteOpJournal["Service"], "recordTaken">,
  { notifyEvents }: Pick<Listener, "notifyEvents">,
  entries: ReadonlyArray<AwaitedOp>
): Effect.Effect<void> => {
  const unrecorded = entries.filter(({ isAccepted, isRecorded }) => isAccepted && !isRecorded)
  const lanes = Map.groupBy(unrecorded, (entry) => laneKey(RemoteInclusions.laneOf(entry)))
  return Effect.forEach(
    lanes.values(),
    (taken) => {
      const [first] = taken
      if (first === undefined) return Effect.void
      const { chainId, signer } = RemoteInclusions.laneOf(first)
      const hashes = taken.map(({ submission }) => submission.userOpHash)
      return Effect.matchCauseEffect(Effect.tap(recordTaken(signer, chainId, hashes), notifyEvents), {
        onFailure: (cause) => Effect.logDebug("submitted events deferred", cause),
        onSuccess: () =>
          Effect.sync(() => {
            for (const entry of taken) entry.isRecorded = true
          })
      })
    },
    { discard: true }
  )
}
