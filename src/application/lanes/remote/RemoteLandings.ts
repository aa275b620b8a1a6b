import * as Effect from "effect/Effect"
import type * as Inclusions from "../../chain/Inclusions.js"
import type { Block } from "../../ports/chain/ChainRpc.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import type { Entry, Held } from "./RemoteInclusions.js"
import * as RemoteInclusions from "./RemoteInclusions.js"

const outcomeOf = ({ profile, submission }: Entry, inclusion: Inclusions.Inclusion, head: Block) => {
  const { blockNumber, revertData, success, txHash } = inclusion
  const { landedAs, userOpHash } = submission
  const final = RemoteInclusions.deepEnough(blockNumber, profile.settledDepth, head)
  const confirmations = final ? profile.settledDepth : profile.confirmations
  return { userOpHash, success, revertData, txHash, blockNumber, confirmations, landedAs, final }
}

/**
 * What the journal is told of where an op landed: at the depth of an answer, at settled depth, and when a reorganisation has
 * taken it back.
 */
export const make = (options: {
  readonly remoteOpJournal: RemoteOpJournal["Service"]
  readonly wake: (held: Held, requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  /** The op is watched no more. */
  readonly drop: (entry: Entry) => void
  /** The bundler is asked for the op at once, as if it had just been given it. */
  readonly offerAgain: (entry: Entry) => void
  /** The final answer of some request was undone by a reorganisation. */
  readonly reopened: Effect.Effect<void>
}) => {
  const { remoteOpJournal, wake, drop, offerAgain, reopened } = options

  const finalise = (entry: Entry, blockNumber: bigint) => {
    const { profile, submission } = entry
    const { authority, chainId } = submission.space
    const { userOpHash } = submission
    return Effect.tap(
      remoteOpJournal.finaliseInclusions(authority, chainId, [
        { userOpHash, blockNumber, confirmations: profile.settledDepth }
      ]),
      () => Effect.sync(() => drop(entry))
    )
  }

  /** A recorded inclusion has left the chain. */
  const revert = (entry: Entry) =>
    Effect.gen(function* () {
      const { space, userOpHash } = entry.submission
      entry.submission = { ...entry.submission, landedAs: userOpHash }
      entry.landed = null
      entry.missedSince = null
      entry.next = entry.submission.since
      offerAgain(entry)
      const affected = yield* remoteOpJournal.revertInclusions(space.authority, space.chainId, [userOpHash])
      // Nobody else has it to offer it again: the request goes on with its nonce.
      if (entry.offer === null) drop(entry)
      yield* wake(entry, affected)
      yield* reopened
    })

  return {
    /** Records an inclusion that is deep enough for an answer. */
    record: (entry: Entry, inclusion: Inclusions.Inclusion, head: Block) =>
      Effect.gen(function* () {
        const { submission, profile } = entry
        const { authority, chainId } = submission.space
        const { blockNumber, txHash } = inclusion
        entry.next = RemoteInclusions.earlier(entry.next, blockNumber)
        if (!RemoteInclusions.deepEnough(blockNumber, profile.confirmations, head)) return
        const outcome = outcomeOf(entry, inclusion, head)
        const affected = yield* remoteOpJournal.recordInclusions(
          authority,
          chainId,
          [outcome],
          submission.node
        )
        entry.isTold = true
        entry.landed = { txHash, block: inclusion }
        entry.lookedAt = head.number
        entry.missedSince = null
        if (outcome.final) drop(entry)
        yield* wake(entry, affected)
      }),
    /** Looks whether a recorded inclusion is still there, and whether it is at settled depth by now. */
    confirm: (entry: Entry, landed: NonNullable<Entry["landed"]>, head: Block) =>
      Effect.gen(function* () {
        if (head.number === entry.lookedAt && entry.missedSince === null) return
        const seen = yield* RemoteInclusions.confirm(entry, landed, head)
        entry.lookedAt = head.number
        const { action, state } = seen.step
        entry.missedSince = state._tag === "mined" ? state.missedSince : null
        if (action._tag === "withdraw") return yield* revert(entry)
        if (seen.block === null) return
        entry.landed = { txHash: landed.txHash, block: seen.block }
        if (action._tag === "finalise") yield* finalise(entry, seen.block.blockNumber)
      })
  }
}
