import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, invalidAt, unavailable, unprocessable } from "../failures/Failure.js"
import * as Troubles from "../observe/Troubles.js"
import { DecisionHook } from "../policies/DecisionHook.js"
import { Rules } from "../policies/Rules.js"
import type { Budgets } from "../ports/Budgets.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import { isUndone } from "../ports/journal/JournalError.js"
import type { OpJournal } from "../ports/journal/OpJournal.js"
import type { Acceptance, AcceptanceResult } from "../ports/journal/Records.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { NonceSpace } from "../ports/journal/Requests.js"
import { type Lane, laneKey } from "../ports/journal/Transactions.js"
import type { AccountId } from "../ports/Tenants.js"
import * as Call from "../prepare/Call.js"
import type { Offer } from "../prepare/Offer.js"
import * as OpContext from "../prepare/OpContext.js"
import * as Links from "../prepare/ops/Links.js"
import type * as Preparation from "../prepare/Preparation.js"
import * as Reservations from "../prepare/Reservations.js"
import * as Keys from "./Keys.js"
import * as Money from "./Money.js"
import * as Room from "./Room.js"
import * as Run from "./Run.js"

/**
 * Accepts requests: prepares those that arrive together with the same settings in one run, and accepts them in one transaction.
 * An accepted request belongs to its lane.
 *
 * Gotchas: a client's disconnect does not stop its request. Work before acceptance may be repeated, and a process that dies
 * before it leaves nothing behind. Work after acceptance is never repeated.
 */

/**
 * - `accepted`: request `requestId` was accepted; `isKnown`: an earlier request with the same idempotency key
 * - `refused`: no element was accepted, because each failed or was already done
 */
export type Taken =
  | { readonly _tag: "accepted"; readonly requestId: string; readonly isKnown: boolean }
  | {
      readonly _tag: "refused"
      readonly failed: ReadonlyMap<number, ElementFailure>
      readonly existing: ReadonlyArray<number>
    }

export interface Intake {
  readonly take: (offer: Offer) => Effect.Effect<Taken, Failure>
  /** Whether a request with the idempotency key is being prepared. */
  readonly isPreparing: (accountId: AccountId, endpoint: string, key: string) => boolean
  /** Ops of the lane ended: retries the requests that wait for a nonce key of the lane. */
  readonly released: (lane: Lane) => Effect.Effect<void>
  /** Refuses further requests; running acceptances complete. */
  readonly stop: Effect.Effect<void>
}

/** An offer without a result. */
interface Waiting extends Room.Member {
  readonly offer: Offer
  readonly resume: (exit: Exit.Exit<Taken, Failure>) => void
  /** End of the wait for a nonce key, Unix milliseconds. */
  readonly deadline: number
  tries: number
  /** Elements that lost a conflict with other requests. */
  readonly lost: Map<number, ElementFailure>
}

/** Interval and total time of retries to learn whether a commit took effect, milliseconds. */
const doubtPauseMillis = 250
const doubtMillis = 20_000

/** Nonce conflicts after which an element fails with `wallet_busy`. */
const mostTries = 8

const reused = () =>
  Exit.fail(
    invalidAt("Idempotency-Key", "it was used with another body; take a new key", "idempotency_key_reused")
  )

const noKeys: ReadonlySet<bigint> = new Set()

/** The nonce is settled in the journal but free on the chain: the node lags, or lost the op's block. */
const isOfSettled = (result: AcceptanceResult): boolean => result._tag === "nonceTaken" && result.isSettled

export type Services = Budgets | BundlerRpc | ChainFacts | DecisionHook | Rules

export const make = (options: {
  readonly requestJournal: RequestJournal["Service"]
  readonly opJournal: Pick<OpJournal["Service"], "findOp">
  /** Fails if too many requests wait for their windows. */
  readonly enterWaiting: (entry: {
    readonly accountId: AccountId
    readonly elements: number
  }) => Effect.Effect<void, Failure>
  /** Wakes the lane's worker after acceptance. */
  readonly wakeLane: (
    lane: Lane,
    accepted: ReadonlyArray<Pick<Acceptance, "requestId" | "unopened">>
  ) => Effect.Effect<void>
  /** A reorganisation may have undone settled transactions of the lane: has them mined again. */
  readonly broadcastUndone: (context: OpContext.OfRequest) => Effect.Effect<void>
}): Effect.Effect<Intake, never, Services> =>
  Effect.gen(function* () {
    const { decide } = yield* DecisionHook
    const rules = yield* Rules
    const { enterWaiting, opJournal, requestJournal, wakeLane, broadcastUndone } = options
    const services = yield* Effect.context<Budgets | BundlerRpc | ChainFacts>()
    const fork = yield* Effect.withFiber((fiber) => Effect.succeed(Effect.runForkWith(fiber.context)))
    const keys = Keys.make()
    /** Idempotency keys in preparation; a second request with the same key waits for the first. */
    const preparing = new Map<string, Deferred.Deferred<void>>()
    let isStopped = false

    /** Drops the element and retries the others. */
    const lose = (one: Waiting, index: number, failure: ElementFailure): void => {
      one.lost.set(index, failure)
      Links.failDependants(Call.dependencies(one.offer.calls), one.lost)
      one.tries = 0
      room.enter(one)
    }

    const goAgain = (one: Waiting, index: number): void => {
      one.tries += 1
      if (one.tries < mostTries) room.enter(one)
      else lose(one, index, elementFailure("wallet_busy"))
    }

    const conclude = (one: Waiting, { ops }: Acceptance, result: AcceptanceResult, now: number): void => {
      if (result._tag === "accepted")
        one.resume(Exit.succeed({ _tag: "accepted", requestId: one.offer.requestId, isKnown: false }))
      else if (result._tag === "known") one.resume(knownExit(one, result))
      else if (result._tag === "over") one.resume(Exit.fail(unavailable()))
      else if (result._tag === "otherConfiguration")
        // Each creation has one deployment.
        lose(one, ops[result.deployment]?.index ?? 0, elementFailure("deployment_pending"))
      // Ops retry under another nonce. A fixed nonce waits for the op that has it; a settled one, for the node to show its use.
      else if (
        now >= one.deadline ||
        (result._tag === "nonceTaken" && !result.isSettled && Run.kindOf(one.offer) === "op")
      )
        goAgain(one, result.index)
      else room.wait(one)
    }

    const knownExit = (
      { offer: { caller } }: Waiting,
      { bodyHash, requestId }: { readonly bodyHash: Bytes32; readonly requestId: string }
    ): Exit.Exit<Taken, Failure> =>
      bodyHash === caller.idempotency?.bodyHash
        ? Exit.succeed({ _tag: "accepted", requestId, isKnown: requestId !== caller.requestId })
        : reused()

    const giveBack = (lost: ReadonlyArray<Waiting>): Effect.Effect<void> =>
      Effect.forEach(
        lost,
        ({ offer: { calls, context } }) =>
          Effect.andThen(Reservations.giveBack(context, calls), rules.release(context, calls)),
        { discard: true }
      ).pipe(Effect.provideContext(services))

    const refuseAll = (undone: ReadonlyArray<Waiting>): Effect.Effect<void> =>
      Effect.andThen(
        giveBack(undone),
        Effect.sync(() => {
          for (const { resume } of undone) resume(Exit.fail(unavailable()))
        })
      )

    /** A commit whose reply was lost may have taken effect: the journal decides for each request. */
    const resolveDoubt = (one: Waiting): Effect.Effect<void> => {
      const { requestId } = one.offer
      return requestJournal.decline(requestId).pipe(
        Effect.retry(Schedule.spaced(doubtPauseMillis)),
        Effect.timeoutOption(doubtMillis),
        Effect.matchCause({
          // The outcome is unknown: a retry might execute the request twice.
          onFailure: (): Option.Option<Lane | null> => Option.none(),
          onSuccess: (decided) => decided
        }),
        Effect.tap((decided) =>
          Option.isSome(decided) && decided.value === null ? giveBack([one]) : Effect.void
        ),
        Effect.map(
          Option.match({
            onNone: () =>
              one.resume(
                Exit.fail(
                  unprocessable("outcome_unknown", [], {
                    extra: { requestId, txHash: "" }
                  })
                )
              ),
            onSome: (lane) =>
              one.resume(
                lane === null
                  ? Exit.fail(unavailable())
                  : Exit.succeed({ _tag: "accepted", requestId, isKnown: false })
              )
          })
        )
      )
    }

    /** Logs the failure for the operator; callers do not see its cause. */
    const journalFailed = (cause: Cause.Cause<unknown>) =>
      Effect.flatMap(Troubles.Shared, ({ failed }) =>
        failed({ what: "the journal failed while it accepted requests", place: "" }, cause)
      )

    const offerAll = (
      ready: ReadonlyArray<{ readonly one: Waiting; readonly acceptance: Acceptance }>,
      lane: Lane,
      now: number
    ) =>
      ready.length === 0
        ? Effect.void
        : Effect.matchCauseEffect(
            Effect.uninterruptible(requestJournal.accept(ready.map(({ acceptance }) => acceptance))),
            {
              onFailure: (cause) =>
                Effect.andThen(
                  journalFailed(cause),
                  isUndone(cause)
                    ? refuseAll(ready.map(({ one }) => one))
                    : Effect.forEach(ready, ({ one }) => resolveDoubt(one), {
                        concurrency: "unbounded",
                        discard: true
                      })
                ),
              onSuccess: (results) =>
                Effect.gen(function* () {
                  yield* wakeLane(
                    lane,
                    ready.map(({ acceptance }) => acceptance)
                  )
                  // Before the retries: they reserve the money again.
                  yield* giveBack(
                    ready.flatMap(({ one }, place) => (results[place]?._tag === "accepted" ? [] : [one]))
                  )
                  for (const [place, { acceptance, one }] of ready.entries()) {
                    const result = results[place]
                    if (result !== undefined) conclude(one, acceptance, result, now)
                  }
                  const [first] = ready
                  if (first !== undefined && results.some(isOfSettled))
                    yield* broadcastUndone(first.one.offer.context)
                })
            }
          )

    /** Null: the request is not accepted, and its caller has the answer. */
    const readyOf = (
      one: Waiting,
      made: Result.Result<Preparation.Prepared, Failure>,
      kept: Run.Kept | undefined,
      timestamp: number,
      now: number
    ): Effect.Effect<Acceptance | null> =>
      Effect.gen(function* () {
        if (Result.isFailure(made)) {
          one.resume(Exit.fail(made.failure))
          return null
        }
        const { existing, ops, waiting } = made.success
        const failed = new Map([...made.success.failed, ...one.lost])
        const acceptance = Run.acceptance(one.offer, { ...made.success, failed }, kept, timestamp, now)
        if (ops.length === 0 && acceptance.unopened === 0) {
          one.resume(Exit.succeed({ _tag: "refused", failed, existing }))
          return null
        }
        if (waiting.size === 0) return acceptance
        const { accountId } = one.offer.context
        const entered = yield* Effect.exit(enterWaiting({ accountId, elements: one.offer.calls.length }))
        if (Exit.isSuccess(entered)) return acceptance
        yield* giveBack([one])
        one.resume(Exit.failCause(entered.cause))
        return null
      })

    /** Reads the journal, prepares and accepts requests with the same settings. */
    const run = (
      members: ReadonlyArray<Waiting>
    ): Effect.Effect<void, Failure, Budgets | BundlerRpc | ChainFacts> =>
      Effect.gen(function* () {
        const [first] = members
        if (first === undefined) return
        const { context } = first.offer
        const observation = keys.observe()
        const taken: Array<{ readonly space: NonceSpace; readonly key: bigint }> = []
        yield* Effect.gen(function* () {
          const all = members.map(({ offer }) => offer)
          const question = Run.question(all)
          const seen = yield* requestJournal
            .read(question)
            .pipe(
              Effect.catchCause((cause) => Effect.andThen(journalFailed(cause), Effect.fail(unavailable())))
            )
          const now = yield* Clock.currentTimeMillis
          const known = Run.knownOf(all, seen)
          const fresh = members.filter((one, place) => {
            const before = known[place] ?? null
            if (before !== null) one.resume(knownExit(one, before))
            return before === null
          })
          if (fresh.length === 0) return
          const used = new Map(question.spaces.map(({ wallet }, place) => [wallet, seen.spaces[place]]))
          const asked = fresh.map(({ deadline, lost, offer }) => ({
            ...offer,
            calls: lost.size === 0 ? offer.calls : offer.calls.filter(({ index }) => !lost.has(index)),
            isPatient: now < deadline
          }))
          const made = yield* Run.prepare({
            context,
            offers: asked,
            posted: ({ principal: { accountId } }, { userOpHash }) =>
              Effect.orDie(opJournal.findOp(accountId, context.chainId, userOpHash)),
            take: (space, epoch) => {
              const key = keys.take(space, epoch, used.get(space.wallet)?.keys ?? noKeys, observation)
              if (key !== null) taken.push({ space, key })
              return key
            }
          })
          yield* OpContext.checkPauses(context)
          const { batches: judged, names } = yield* rules.judge(asked, made.batches)
          const batches = yield* rules.reserve(
            asked,
            yield* Money.hold(context, asked, { ...made, batches: yield* decide(asked, judged) })
          )
          const kept = yield* Effect.forEach(
            fresh,
            ({ offer }, place) => Run.kept(offer, batches[place], names[place]),
            { concurrency: "unbounded" }
          )
          const timestamp = made.snapshot?.block.timestamp ?? 0
          const ready: Array<{ readonly one: Waiting; readonly acceptance: Acceptance }> = []
          for (const [place, one] of fresh.entries()) {
            const own = batches[place]
            if (own === "busy") room.wait(one)
            else if (own !== undefined) {
              const acceptance = yield* readyOf(one, own, kept[place], timestamp, now)
              if (acceptance !== null) ready.push({ one, acceptance })
            }
          }
          if (isStopped) {
            yield* giveBack(ready.map(({ one }) => one))
            for (const { one } of ready) one.resume(Exit.fail(unavailable()))
          } else yield* offerAll(ready, Run.laneOf(first.offer), now)
        }).pipe(
          Effect.ensuring(
            Effect.sync(() => {
              keys.end(observation)
              for (const { key, space } of taken) keys.giveBack(space, key)
            })
          )
        )
      })

    const room: Room.Room<Waiting> = Room.make({
      fork,
      run: (members: ReadonlyArray<Waiting>) => Effect.provideContext(run(members), services),
      fail: ({ resume }, exit) => resume(exit)
    })

    const enqueue = (offer: Offer, onEnd: () => void): Effect.Effect<Taken, Failure> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.callback<Taken, Failure>((resume) => {
          let isOver = false
          const patience = offer.context.connection.profile.receiptTimeoutMillis
          room.enter({
            offer,
            lane: laneKey(Run.laneOf(offer)),
            // Requests without previews do not wait for simulations of others.
            group: `${Run.kindOf(offer)} ${offer.preview !== undefined} ${offer.context.digest}`,
            account: offer.context.accountId,
            ops: offer.calls.length,
            bytes: offer.body.length,
            deadline: now + patience,
            tries: 0,
            lost: new Map(),
            resume: (exit) => {
              if (isOver) return
              isOver = true
              onEnd()
              resume(exit)
            }
          })
        })
      )

    const take = (offer: Offer): Effect.Effect<Taken, Failure> =>
      Effect.suspend(() => {
        if (isStopped) return Effect.fail(unavailable())
        const { caller, context, endpoint } = offer
        if (caller.idempotency == null) return enqueue(offer, () => {})
        const name = JSON.stringify([context.accountId, endpoint, caller.idempotency.key])
        const before = preparing.get(name)
        if (before !== undefined) return Effect.andThen(Deferred.await(before), take(offer))
        const over = Deferred.makeUnsafe<void>()
        preparing.set(name, over)
        return enqueue(offer, () => {
          preparing.delete(name)
          Deferred.doneUnsafe(over, Effect.void)
        })
      })

    return {
      take,
      isPreparing: (...place) => preparing.has(JSON.stringify(place)),
      released: (lane) => Effect.sync(() => room.released(laneKey(lane))),
      stop: Effect.sync(() => {
        isStopped = true
        for (const { resume } of room.drain()) resume(Exit.fail(unavailable()))
      })
    }
  })
