import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type * as Hex from "../../../domain/primitives/Hex.js"
import type * as Inclusions from "../../chain/Inclusions.js"
import * as Troubles from "../../observe/Troubles.js"
import {
  type BundlerClient,
  type BundlerRpcError,
  isCertain,
  type Offer
} from "../../ports/chain/BundlerRpc.js"
import type { Block, ChainClient } from "../../ports/chain/ChainRpc.js"
import * as Holding from "../../ports/journal/Holding.js"
import { isFenced } from "../../ports/journal/JournalError.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import type { RemoteSubmission } from "../../ports/journal/RemoteSubmissions.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import * as ReceiptSchedule from "../monitor/ReceiptSchedule.js"
import type { Listener } from "../Settlement.js"
import type { AwaitedOp, Held } from "./RemoteInclusions.js"
import * as RemoteInclusions from "./RemoteInclusions.js"
import * as RemoteLandings from "./RemoteLandings.js"

/**
 * Follows the ops that no own transaction carries. It gives them to external bundlers and finds their inclusions;
 * `RemoteLandings` records these. The lanes' workers use it.
 *
 * Gotchas: a bundler's answer may be lost: such an op counts as given and stays watched.
 */

export interface RemoteOps {
  /**
   * Gives the bundler a newly handed-over op and watches it. `answered` receives the refusal; null: the bundler has the op, or
   * may have it.
   */
  readonly give: (
    held: Held & Submission,
    answered: (entry: AwaitedOp, refusal: BundlerRpcError | null) => Effect.Effect<void>
  ) => Effect.Effect<void>
  /** Watches an op from the journal, perhaps of an earlier process. An op already watched switches to this node and bundler. */
  readonly resume: (held: Held) => Effect.Effect<AwaitedOp>
  readonly isWatched: (submission: RemoteSubmission) => boolean
  readonly forget: (entry: AwaitedOp) => Effect.Effect<void>
}

type Submission = { readonly bundler: BundlerClient; readonly offer: Offer }

/** AA10 and AA25: the chain or the bundler's pool has changed since the op was made. */
const outdated = /\bAA(?:10|25)\b/

/** The bundler may accept the op later. */
const isPassing = ({ message, reason }: BundlerRpcError): boolean =>
  reason === "throttled" || reason === "rateLimited" || outdated.test(message)

/** Delay of the first query for an op after it was given to its bundler, milliseconds. */
const offerMillis = 10_000
/** First delay after an unknown answer, milliseconds; doubles each time, up to a minute. */
const firstOfferMillis = 250
const longestOfferMillis = 60_000

/** Ops watched at a node. */
interface Watched extends ReceiptSchedule.Resting {
  readonly entries: Map<string, AwaitedOp>
}

const intervalOf = (entries: Iterable<AwaitedOp>): number =>
  Math.min(...[...entries].map(({ profile }) => profile.pollIntervalMillis))

const givenOf = ({ givenAt, profile }: AwaitedOp): ReceiptSchedule.Submission => ({
  chainId: profile.chainId,
  givenAt,
  intervalMillis: profile.pollIntervalMillis
})

const keyOf = ({ submission: { space, userOpHash } }: Pick<Held, "submission">): string =>
  `${space.authority}:${userOpHash}`

/**
 * Watches ops by EntryPoint logs where no own transaction shows them: one loop per node serves all its ops. Ops that a remote
 * bundler lost are offered again as signed, while they may land. Inclusions are watched until settled depth.
 */
export const make = ({
  listener,
  remoteOpJournal
}: {
  readonly remoteOpJournal: RemoteOpJournal["Service"]
  readonly listener: Pick<Listener, "affected" | "reopened" | "notifyEvents">
}): Effect.Effect<RemoteOps, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const nodes = new Map<ChainClient, Watched>()
    const schedule = ReceiptSchedule.make()
    const troubles = Troubles.make()
    /** Per node: covers all ops watched there. */
    const troubleOf = (what: string, { origin }: ChainClient, entry?: AwaitedOp): Troubles.Trouble => ({
      what,
      place: origin,
      isDelay: true,
      ...(entry !== undefined && { subject: entry.submission.userOpHash })
    })

    const drop = (entry: AwaitedOp) => {
      const entries = nodes.get(entry.chain)?.entries
      if (entries?.get(keyOf(entry)) === entry) entries.delete(keyOf(entry))
    }

    /** Another process owns the lane and watches the op. If the lane returns, the journal has the op. */
    const asOwner = <E>(entry: AwaitedOp, step: Effect.Effect<void, E>): Effect.Effect<void, E> =>
      Effect.catchCause(step, (cause) =>
        isFenced(cause) ? Effect.sync(() => drop(entry)) : Effect.failCause(cause)
      )

    /** Adds the entry to its node's entries, and starts the node's loop if it is not running. */
    const attach = (entry: AwaitedOp) =>
      Effect.gen(function* () {
        const { chain } = entry
        const known = nodes.get(chain)
        const node = known ?? {
          entries: new Map(),
          regularAt: 0,
          roundAt: 0,
          rest: Latch.makeUnsafe(true)
        }
        node.entries.set(keyOf(entry), entry)
        if (known !== undefined) return
        nodes.set(chain, node)
        yield* Effect.forkIn(Holding.outlive(loop(chain, node)), scope)
      })

    const watchedAs = (submission: RemoteSubmission): AwaitedOp | undefined => {
      const key = keyOf({ submission })
      for (const { entries } of nodes.values()) {
        const entry = entries.get(key)
        if (entry !== undefined) return entry
      }
      return undefined
    }

    const landings = RemoteLandings.make({
      remoteOpJournal,
      listener,
      drop,
      offerAgain: (entry) => {
        entry.offerAt = 0
        entry.offerDelay = firstOfferMillis
      }
    })

    const revoke = (entry: AwaitedOp, head: Block) =>
      Effect.gen(function* () {
        const { submission } = entry
        const inclusion = yield* RemoteInclusions.anywhere(entry, head)
        if (inclusion !== null) return yield* landings.record(entry, inclusion, head)
        const lane = RemoteInclusions.laneOf(entry)
        yield* remoteOpJournal.takeBack(lane, [submission.userOpHash], true)
        drop(entry)
        yield* listener.affected(lane, [submission.requestId])
      })

    /** In parallel to the polls, at most once at a time per op: a bundler may take long. */
    const attend = (entry: AwaitedOp, head: Block, now: number) =>
      Effect.suspend(() => {
        entry.busy = true
        entry.offerAt = now + entry.offerDelay
        entry.offerDelay = Math.min(entry.offerDelay * 2, longestOfferMillis)
        const work = Effect.gen(function* () {
          if (yield* RemoteInclusions.isPast(entry, head)) return yield* revoke(entry, head)
          if (entry.bundler !== null) yield* RemoteInclusions.offer(entry, entry.bundler, head)
        })
        const trouble = troubleOf("remote op unchanged", entry.chain, entry)
        return Effect.asVoid(
          Effect.forkIn(
            troubles.tolerate(trouble, asOwner(entry, work)).pipe(
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

    /** A failed step is repeated in the next round. */
    const tolerated = (entry: AwaitedOp, step: Effect.Effect<void, unknown>) =>
      Effect.annotateLogs(
        troubles.tolerate(
          troubleOf("poll of a remote op failed; retrying", entry.chain, entry),
          asOwner(entry, step)
        ),
        { userOpHash: entry.submission.userOpHash }
      )

    const group = (chain: ChainClient, entries: ReadonlyArray<AwaitedOp>, head: Block, began: number) =>
      Effect.gen(function* () {
        const [first] = entries
        if (first === undefined) return
        const seen = yield* Effect.result(
          RemoteInclusions.find(chain, first.submission.space.entryPoint, entries, head)
        )
        const silence = {
          ...troubleOf("node does not report outcomes of remote ops", chain),
          subject: first.submission.space.entryPoint
        }
        yield* Result.match(seen, {
          onFailure: (error) => troubles.failed(silence, Cause.fail(error)),
          onSuccess: () => troubles.passed(silence)
        })
        const { complete, inclusions } = Result.getOrElse(seen, () => ({
          complete: false,
          inclusions: new Map<Hex.Bytes32, Inclusions.Inclusion>()
        }))
        const now = yield* MonotonicTime.millis
        for (const entry of entries) {
          const inclusion =
            inclusions.get(entry.submission.userOpHash) ?? (yield* RemoteInclusions.ofHint(entry))
          if (inclusion !== null && Number.isFinite(entry.givenAt)) {
            schedule.seen(givenOf(entry), began)
            entry.givenAt = Number.POSITIVE_INFINITY
          } else if (inclusion === null) schedule.missed(givenOf(entry), began)
          if (inclusion !== null) yield* tolerated(entry, landings.record(entry, inclusion, head))
          else if (entry.busy || (!complete && Result.isSuccess(seen))) continue
          else if (now >= entry.offerAt || RemoteInclusions.isOver(entry, head))
            yield* attend(entry, head, now)
        }
      })

    const poll = (chain: ChainClient, node: Watched) =>
      Effect.gen(function* () {
        const now = yield* MonotonicTime.millis
        const all = [...node.entries.values()]
        const isRegular = ReceiptSchedule.isRegular(node, intervalOf(all), now)
        const entries = all.filter((entry) => {
          const given = givenOf(entry)
          return (isRegular || schedule.isYoung(given, now)) && !schedule.isEarly(given, now)
        })
        if (entries.length === 0) return
        const head = yield* chain.block("latest")
        if (head === null) return
        const groups = new Map<string, Array<AwaitedOp>>()
        for (const entry of entries) {
          const { landed } = entry
          if (landed !== null) {
            yield* tolerated(entry, landings.confirm(entry, landed, head))
            continue
          }
          const of = groups.get(entry.submission.space.entryPoint) ?? []
          groups.set(entry.submission.space.entryPoint, of)
          of.push(entry)
        }
        for (const all of groups.values())
          for (let at = 0; at < all.length; at += RemoteInclusions.maxOps)
            yield* group(chain, all.slice(at, at + RemoteInclusions.maxOps), head, now)
        if (isRegular) yield* RemoteLandings.recordSubmitted(remoteOpJournal, listener, all)
      })

    /** A failed round must not end the loop, which serves all ops at this node. */
    const round = (chain: ChainClient, node: Watched) =>
      troubles.tolerate(troubleOf("poll of remote ops failed", chain), poll(chain, node))

    const rest = (node: Watched) =>
      Effect.suspend(() => {
        const all = [...node.entries.values()]
        return all.length === 0 ? Effect.void : schedule.rest(node, intervalOf(all), all.map(givenOf))
      })

    const loop = (chain: ChainClient, node: Watched): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (node.entries.size === 0) {
          nodes.delete(chain)
          return Effect.void
        }
        return round(chain, node).pipe(Effect.andThen(rest(node)), Effect.andThen(loop(chain, node)))
      })

    /** The entry is `busy` until its first offer is done; see `offered`. */
    const watch = (held: Held): Effect.Effect<AwaitedOp> =>
      Effect.gen(function* () {
        const { submission } = held
        const entry: AwaitedOp = {
          ...held,
          next: submission.since,
          hint: null,
          landed: submission.includedIn === null ? null : { txHash: submission.includedIn, block: null },
          checkedBlock: -1n,
          missedSince: null,
          givenAt: Number.POSITIVE_INFINITY,
          offerAt: 0,
          offerDelay: firstOfferMillis,
          busy: true,
          isAccepted: false,
          isRecorded: false,
          isRefused: submission.isRefused
        }
        yield* attach(entry)
        return entry
      })

    /**
     * Schedules the next query at the bundler, sooner if its answer is unknown. `before`: an earlier process may have offered
     * the op. `refused`: the op is not offered again.
     */
    const offered = (
      entry: AwaitedOp,
      answer: "taken" | "unknown" | "before" | "refused"
    ): Effect.Effect<void> =>
      Effect.flatMap(MonotonicTime.millis, (now) => {
        entry.offerAt = now + (answer === "unknown" ? firstOfferMillis : offerMillis)
        entry.busy = false
        if (answer === "taken") entry.isAccepted = true
        if (answer === "refused") entry.isRefused = true
        if ((answer !== "taken" && answer !== "unknown") || entry.landed !== null) return Effect.void
        entry.givenAt = now
        const isAwaited = schedule.isYoung(givenOf(entry), now)
        return isAwaited ? (nodes.get(entry.chain)?.rest.open ?? Effect.void) : Effect.void
      })

    /** Sends an op to its bundler for the first time; returns the refusal, or null: the bundler has the op, or may have it. */
    const send = (entry: AwaitedOp, { bundler, offer }: Submission): Effect.Effect<BundlerRpcError | null> =>
      Effect.gen(function* () {
        const { userOpHash } = entry.submission
        const trouble = {
          what: "a bundler did not take an op for certain; it stays watched",
          place: bundler.origin,
          isDelay: true
        }
        const answer = yield* Effect.result(bundler.send(offer, userOpHash))
        if (Result.isSuccess(answer)) {
          yield* Effect.andThen(troubles.passed(trouble), offered(entry, "taken"))
          return null
        }
        const error = answer.failure
        // The chain counts more than the bundler's answer.
        const isUnknown = !isCertain(error) || entry.landed !== null
        if (isUnknown || (isPassing(error) && entry.validUntil !== 0)) {
          yield* offered(entry, "unknown")
          yield* Effect.annotateLogs(troubles.failed(trouble, Cause.fail(error)), { userOpHash })
          return null
        }
        yield* offered(entry, "refused")
        return error
      })

    return {
      give: (held, answered) =>
        Effect.flatMap(watch(held), (entry) =>
          Effect.asVoid(
            Effect.forkIn(
              Effect.onExit(send(entry, held), (exit) =>
                Exit.isSuccess(exit)
                  ? answered(entry, exit.value)
                  : Effect.andThen(offered(entry, "unknown"), answered(entry, null))
              ),
              scope
            )
          )
        ).pipe(Effect.uninterruptible),
      isWatched: (submission) => watchedAs(submission) !== undefined,
      resume: (held) =>
        Effect.suspend(() => {
          const { bundler, chain, profile, submission } = held
          const entry = watchedAs(submission)
          // Not offered immediately: the process that gave it to the bundler may still wait for the answer.
          if (entry === undefined) return Effect.tap(watch(held), (fresh) => offered(fresh, "before"))
          entry.profile = profile
          entry.bundler = bundler
          if (entry.chain === chain) return Effect.succeed(entry)
          drop(entry)
          entry.chain = chain
          // The previous node may have missed inclusions.
          entry.next = submission.since
          entry.checkedBlock = -1n
          return Effect.as(attach(entry), entry)
        }).pipe(Effect.uninterruptible),
      forget: (entry) => Effect.sync(() => drop(entry))
    }
  })
