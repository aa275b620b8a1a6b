import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import type * as Hex from "../../domain/primitives/Hex.js"
import * as Inclusions from "../chain/Inclusions.js"
import type { Block, ChainClient } from "../ports/chain/ChainRpc.js"
import type { RemoteOpJournal } from "../ports/journal/RemoteOpJournal.js"
import type { RemoteSubmission } from "../ports/journal/RemoteSubmissions.js"
import type { Entry, Held } from "./RemoteInclusions.js"
import * as RemoteInclusions from "./RemoteInclusions.js"
import type { WakeUps } from "./requests/WakeUps.js"

export interface RemoteOps {
  /** Watches an op that was handed over or has landed, however long that takes. It is `busy` until its first offer is done: see `offered`. */
  readonly watch: (held: Held) => Effect.Effect<Entry>
  /**
   * The bundler was given the op, or perhaps was: it is asked for it later, sooner when nobody knows. `before`: by another
   * life of the process, perhaps.
   */
  readonly offered: (entry: Entry, answer: "taken" | "unknown" | "before") => Effect.Effect<void>
  readonly isWatched: (submission: RemoteSubmission) => boolean
  /** Forgets an op that is at no remote bundler any more. */
  readonly forget: (entry: Entry) => Effect.Effect<void>
}

export const RemoteOps: Context.Tag<RemoteOps, RemoteOps> = Context.GenericTag("castellan/RemoteOps")

/** A bundler is asked whether it still has an op so long after it was given it. */
const offerMillis = 10_000
/** After an unknown answer it is sooner, and then twice as late each time, up to a minute. */
const firstOfferMillis = 250
const longestOfferMillis = 60_000
/** An inclusion is gone when this many looks in a row do not show it. */
const missesForGone = 2

const keyOf = ({ submission: { space, userOpHash } }: Pick<Held, "submission">): string =>
  `${space.authority}:${userOpHash}`

/**
 * Watches ops by what the EntryPoint logs of them, where no transaction of ours tells: one loop per node serves all of them.
 * Those that a remote bundler has lost are offered to it again, as they were signed, as long as they may land. Those that
 * were found on the chain are watched until they are at settled depth.
 *
 * Long, since the loop of a node and what its looks lead to share one table of ops.
 */
export const make = (options: {
  readonly remoteOpJournal: RemoteOpJournal["Type"]
  readonly wakeUps: Pick<WakeUps, "notify" | "signal">
  /** The final answer of some request was undone by a reorganisation. */
  readonly reopened: Effect.Effect<void>
}): Effect.Effect<RemoteOps, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { remoteOpJournal, wakeUps, reopened } = options
    const nodes = new Map<ChainClient, Map<string, Entry>>()

    const wake = ({ submission: { space } }: Held, requestIds: ReadonlyArray<string>) =>
      Effect.zipRight(
        wakeUps.notify(requestIds),
        wakeUps.signal({ chainId: space.chainId, signer: space.authority })
      )

    const drop = (entry: Entry) => {
      const entries = nodes.get(entry.chain)
      if (entries?.get(keyOf(entry)) === entry) entries.delete(keyOf(entry))
    }

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

    const recordInclusion = (entry: Entry, inclusion: Inclusions.Inclusion, head: Block) =>
      Effect.gen(function* () {
        const { submission, profile } = entry
        const { authority, chainId } = submission.space
        const { blockNumber, revertData, success, txHash } = inclusion
        entry.next = RemoteInclusions.earlier(entry.next, blockNumber)
        if (!RemoteInclusions.deepEnough(blockNumber, profile.confirmations, head)) return
        const { landedAs, node, userOpHash } = submission
        const final = RemoteInclusions.deepEnough(blockNumber, profile.settledDepth, head)
        const confirmations = final ? profile.settledDepth : profile.confirmations
        const outcome = {
          userOpHash,
          success,
          revertData,
          txHash,
          blockNumber,
          confirmations,
          landedAs,
          final
        }
        const affected = yield* remoteOpJournal.recordInclusions(authority, chainId, [outcome], node)
        entry.isTold = true
        entry.landed = { txHash, block: inclusion }
        entry.lookedAt = head.number
        entry.missed = 0
        if (final) drop(entry)
        yield* wake(entry, affected)
      })

    /** Looks whether a recorded inclusion is still there, and whether it is at settled depth by now. */
    const confirm = (entry: Entry, landed: NonNullable<Entry["landed"]>, head: Block) =>
      Effect.gen(function* () {
        const { chain, submission, profile } = entry
        const { authority, chainId, entryPoint } = submission.space
        if (head.number === entry.lookedAt && entry.missed === 0) return
        const receipt = yield* chain.receipt(landed.txHash)
        entry.lookedAt = head.number
        const known = landed.block
        const there =
          receipt !== null &&
          (known === null || known.blockHash === receipt.blockHash) &&
          Inclusions.inReceipt(entryPoint, receipt, [submission.landedAs]).size > 0
        if (!there) {
          entry.missed += 1
          if (entry.missed < missesForGone) return
          entry.landed = null
          entry.hint = null
          entry.next = submission.since
          entry.offerAt = 0
          entry.offerDelay = firstOfferMillis
          const affected = yield* remoteOpJournal.revertInclusions(authority, chainId, [
            submission.userOpHash
          ])
          // Nobody else has it to offer it again: the request goes on with its nonce.
          if (entry.offer === null) drop(entry)
          yield* wake(entry, affected)
          return yield* reopened
        }
        entry.missed = 0
        entry.landed = { txHash: landed.txHash, block: receipt }
        if (RemoteInclusions.deepEnough(receipt.blockNumber, profile.settledDepth, head))
          yield* finalise(entry, receipt.blockNumber)
      })

    const revoke = (entry: Entry, head: Block) =>
      Effect.gen(function* () {
        const { submission } = entry
        const inclusion = yield* RemoteInclusions.anywhere(entry, head)
        if (inclusion !== null) return yield* recordInclusion(entry, inclusion, head)
        yield* remoteOpJournal.revokeRemote(submission.requestId, [submission.index])
        drop(entry)
        yield* wake(entry, [submission.requestId])
      })

    /** At most once at a time for one op, beside the poll: a bundler may take long. */
    const attend = (entry: Entry, head: Block, now: number) =>
      Effect.suspend(() => {
        entry.busy = true
        entry.offerAt = now + entry.offerDelay
        entry.offerDelay = Math.min(entry.offerDelay * 2, longestOfferMillis)
        const work = Effect.gen(function* () {
          if (yield* RemoteInclusions.isPast(entry, head)) return yield* revoke(entry, head)
          if (entry.bundler !== null) yield* RemoteInclusions.offer(entry, entry.bundler, head)
        })
        return Effect.asVoid(
          Effect.forkIn(
            work.pipe(
              Effect.catchAllCause((cause) =>
                Effect.logWarning("an op at a remote bundler is left as it is", cause)
              ),
              Effect.ensuring(
                Effect.sync(() => {
                  entry.busy = false
                })
              ),
              Effect.annotateLogs({ userOpHash: entry.submission.userOpHash })
            ),
            scope
          )
        )
      })

    /** Whatever fails is looked at again in the next round. */
    const tolerated = (entry: Entry, step: Effect.Effect<void, unknown>) =>
      step.pipe(
        Effect.catchAllCause((cause) =>
          Effect.logWarning("a look at an op at a remote bundler failed and is repeated", cause)
        ),
        Effect.annotateLogs({ userOpHash: entry.submission.userOpHash })
      )

    const group = (chain: ChainClient, entries: ReadonlyArray<Entry>, head: Block) =>
      Effect.gen(function* () {
        const [first] = entries
        if (first === undefined) return
        const seen = yield* Effect.either(
          RemoteInclusions.look(chain, first.submission.space.entryPoint, entries, head)
        )
        if (Either.isLeft(seen))
          yield* Effect.logWarning("the node does not tell what became of ops at remote bundlers", seen.left)
        const { complete, inclusions } = Either.getOrElse(seen, () => ({
          complete: false,
          inclusions: new Map<Hex.Bytes32, Inclusions.Inclusion>()
        }))
        const now = yield* Clock.currentTimeMillis
        for (const entry of entries) {
          const inclusion = inclusions.get(entry.submission.userOpHash) ?? entry.hint
          if (inclusion !== null) yield* tolerated(entry, recordInclusion(entry, inclusion, head))
          else if (entry.busy || (!complete && Either.isRight(seen))) continue
          else if (now >= entry.offerAt || RemoteInclusions.isOver(entry, head))
            yield* attend(entry, head, now)
        }
      })

    const round = (chain: ChainClient, entries: ReadonlyMap<string, Entry>) =>
      Effect.gen(function* () {
        const head = yield* chain.block("latest")
        if (head === null) return
        const groups = new Map<string, Array<Entry>>()
        for (const entry of entries.values()) {
          const { landed } = entry
          if (landed !== null) {
            yield* tolerated(entry, confirm(entry, landed, head))
            continue
          }
          const of = groups.get(entry.submission.space.entryPoint) ?? []
          groups.set(entry.submission.space.entryPoint, of)
          of.push(entry)
        }
        for (const all of groups.values())
          for (let at = 0; at < all.length; at += RemoteInclusions.maxOps)
            yield* group(chain, all.slice(at, at + RemoteInclusions.maxOps), head)
        yield* RemoteInclusions.tellTaken(remoteOpJournal, entries.values())
      }).pipe(
        // The loop serves everybody who waits at this node: it ends with the process only.
        Effect.catchAllCause((cause) => Effect.logWarning("a look at ops at remote bundlers failed", cause))
      )

    const loop = (chain: ChainClient, entries: ReadonlyMap<string, Entry>): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (entries.size === 0) {
          nodes.delete(chain)
          return Effect.void
        }
        const interval = Math.min(...[...entries.values()].map(({ profile }) => profile.pollIntervalMillis))
        return round(chain, entries).pipe(
          Effect.zipRight(Effect.suspend(() => (entries.size === 0 ? Effect.void : Effect.sleep(interval)))),
          Effect.zipRight(loop(chain, entries))
        )
      })

    return {
      watch: (held) =>
        Effect.gen(function* () {
          const { chain, submission } = held
          const entry: Entry = {
            ...held,
            next: submission.since,
            hint: null,
            landed: submission.includedIn === null ? null : { txHash: submission.includedIn, block: null },
            lookedAt: -1n,
            missed: 0,
            offerAt: 0,
            offerDelay: firstOfferMillis,
            busy: true,
            isTaken: false,
            isTold: false
          }
          const known = nodes.get(chain)
          const entries = known ?? new Map<string, Entry>()
          entries.set(keyOf(entry), entry)
          if (known === undefined) {
            nodes.set(chain, entries)
            yield* Effect.forkIn(Effect.interruptible(loop(chain, entries)), scope)
          }
          return entry
        }).pipe(Effect.uninterruptible),
      offered: (entry, answer) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          entry.offerAt = now + (answer === "unknown" ? firstOfferMillis : offerMillis)
          entry.busy = false
          if (answer === "taken") entry.isTaken = true
        }),
      isWatched: (submission) => [...nodes.values()].some((entries) => entries.has(keyOf({ submission }))),
      forget: (entry) => Effect.sync(() => drop(entry))
    }
  })
