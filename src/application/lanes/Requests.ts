import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { Journal } from "../ports/journal/Journal.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import * as Answer from "../request/Answer.js"
import type { Caller } from "../request/Caller.js"
import { CurrentRequest } from "../request/CurrentRequest.js"
import { type Failure, invalid, unprocessable } from "../request/Failure.js"
import type { WakeUps } from "./WakeUps.js"

/** Another request with the same idempotency key was accepted first: its answer is this one's too. */
export class AnsweredElsewhere extends Data.TaggedError("AnsweredElsewhere")<{
  readonly requestId: string
}> {}

/** A writing endpoint, as far as its requests outlive the process. */
export interface Kind<A, I, B, J> {
  readonly endpoint: string
  readonly Request: Schema.Schema<A, I>
  readonly Response: Schema.Schema<B, J>
}

export interface Requests {
  /**
   * Runs a writing request, once per idempotency key, and answers with what became of it. Before acceptance an
   * interruption ends the work. After it the work belongs to the engine: it goes on to a stored answer, whatever fails on
   * the way, and the caller is told `outcome_unknown` when that takes longer than his patience.
   */
  readonly run: <A, I, B, J, R>(
    kind: Kind<A, I, B, J>,
    caller: Caller,
    request: A,
    work: Effect.Effect<B, Failure | AnsweredElsewhere, R>
  ) => Effect.Effect<B, Failure, Exclude<R, CurrentRequest>>
  /** Waits until nobody in this process works on the request. */
  readonly idle: (requestId: string) => Effect.Effect<void>
}

export const Requests: Context.Tag<Requests, Requests> = Context.GenericTag("castellan/Requests")

/** A request that is worked on in this process. */
interface Live<B> {
  readonly accepted: Deferred.Deferred<void>
  /** Until when its caller waits, Unix milliseconds, once it is accepted. */
  readonly until: () => number
  readonly result: Deferred.Deferred<B, Failure | AnsweredElsewhere>
  /** Of transactions beside those that the journal counts to it. */
  readonly sent: Array<Bytes32>
  /** Ends the work when it is not accepted yet; nothing else. */
  readonly abort: Effect.Effect<void>
}

/** Ended by a defect: whether the last thing it did has taken effect is not known. */
const crashed = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && Cause.isDie(exit.cause)

/** How long a repeat waits for a request that another process works on, milliseconds. */
const elsewhereMillis = 60_000
/** Pause before an accepted request that could not go on is tried again, at first and at most. */
const firstPauseMillis = 250
const longestPauseMillis = 30_000
/** An accepted request of which nothing was ever sent is given up when it has been in vain for so long. */
const hopelessMillis = 600_000

export const make = (options: {
  readonly journal: Journal["Type"]
  readonly wakeUps: WakeUps
  /** Done once nobody shall wait for a sent transaction any more. */
  readonly stopping: Deferred.Deferred<void>
  readonly scope: Scope.Scope
}): Requests => {
  const { journal, wakeUps, scope, stopping } = options
  /** What is worked on, and the end of that. */
  const live = new Map<string, Deferred.Deferred<void>>()
  /** Requests of one idempotency key go one after the other, until one of them is accepted. */
  const claims = new Map<string, { readonly lock: Effect.Semaphore; holders: number }>()

  const claimed = <A, E, R>(key: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const claim = claims.get(key) ?? { lock: Effect.unsafeMakeSemaphore(1), holders: 0 }
        claim.holders += 1
        claims.set(key, claim)
        return claim
      }),
      ({ lock }) => lock.withPermits(1)(effect),
      (claim) =>
        Effect.sync(() => {
          claim.holders -= 1
          if (claim.holders === 0) claims.delete(key)
        })
    )

  const load = (requestId: string) => Effect.orDie(journal.request(requestId))

  /** Whether the journal holds it, as far as it can be asked at the moment; a start asks again. */
  const isKept = (requestId: string) =>
    journal
      .request(requestId)
      .pipe(
        Effect.retry({ times: 3, schedule: Schedule.spaced(firstPauseMillis) }),
        Effect.match({ onFailure: () => false, onSuccess: (record) => record !== null })
      )

  const outcomeUnknown = (requestId: string, sent: ReadonlyArray<Bytes32> = []) =>
    Effect.flatMap(load(requestId), (record) => {
      const txHashes = [...(record?.txHashes ?? []), ...sent]
      return Effect.fail(
        unprocessable("outcome_unknown", [], {
          extra: { txHash: txHashes.at(-1) ?? "", txHashes, requestId }
        })
      )
    })

  const patience = (millis: number) => Effect.raceFirst(Effect.sleep(millis), Deferred.await(stopping))

  /** The answer of an accepted request of this or another process, or of an earlier life of this one. */
  const stored = <A, I, B, J>(kind: Kind<A, I, B, J>, requestId: string): Effect.Effect<B, Failure> =>
    Effect.raceFirst(
      Effect.flatMap(
        wakeUps.until(
          requestId,
          Effect.map(load(requestId), (record) => record?.outcome ?? null)
        ),
        (outcome) => Answer.decode(kind.Response, outcome)
      ),
      Effect.zipRight(patience(elsewhereMillis), outcomeUnknown(requestId))
    )

  const answerOf = <A, I, B, J>(
    kind: Kind<A, I, B, J>,
    requestId: string,
    { accepted, result, sent, until }: Live<B>
  ) => {
    const waited: Effect.Effect<void> = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now >= until() ? Effect.void : Effect.zipRight(Effect.sleep(until() - now), waited)
    )
    const enough = Effect.raceFirst(waited, Deferred.await(stopping))
    return Effect.raceFirst(
      Deferred.await(result),
      Deferred.await(accepted).pipe(
        Effect.zipRight(enough),
        Effect.zipRight(Effect.suspend(() => outcomeUnknown(requestId, sent)))
      )
    ).pipe(Effect.catchTag("AnsweredElsewhere", (elsewhere) => stored(kind, elsewhere.requestId)))
  }

  /** Whether nothing of the request can be on its way, and it has been in vain for long. */
  const hopeless = (record: RequestRecord, now: number) =>
    now - record.acceptedAt > hopelessMillis &&
    record.txHashes.length === 0 &&
    record.ops.every(({ state }) => state !== "sent" && state !== "settled")

  /** Begins the work in a fiber of the engine; null: another one of this process works on the same request. */
  const begin = <A, I, B, J, R>(
    kind: Kind<A, I, B, J>,
    caller: Caller,
    body: string,
    work: Effect.Effect<B, Failure | AnsweredElsewhere, R>
  ): Effect.Effect<Live<B> | null, never, Exclude<R, CurrentRequest>> =>
    Effect.gen(function* () {
      const { requestId } = caller
      if (live.has(requestId)) return null
      const ended = Deferred.unsafeMake<void>(FiberId.none)
      live.set(requestId, ended)
      const accepted = yield* Deferred.make<void>()
      const result = yield* Deferred.make<B, Failure | AnsweredElsewhere>()
      const sent: Array<Bytes32> = []
      let until = 0
      let durable = caller.resumed === true
      let concluded = false
      let unwanted = false
      let attempt: Fiber.RuntimeFiber<B, Failure | AnsweredElsewhere> | null = null

      const lead = (
        resumed: boolean,
        pauseMillis: number
      ): Effect.Effect<void, never, Exclude<R, CurrentRequest>> =>
        Effect.gen(function* () {
          concluded = false
          // A fiber of its own: an interruption that is meant for it shall not end what is around it.
          const fiber = yield* Effect.fork(
            Effect.interruptible(
              Effect.provideService(work, CurrentRequest, {
                body,
                idempotency: caller.idempotency ?? null,
                resumed,
                accepted: () => durable,
                relies: [],
                accept: (patienceMillis) =>
                  Effect.flatMap(Clock.currentTimeMillis, (now) => {
                    durable = true
                    until = now + patienceMillis
                    return Effect.asVoid(Deferred.succeed(accepted, undefined))
                  }),
                sent: (txHashes) => Effect.sync(() => void sent.push(...txHashes)),
                conclude: Effect.sync(() => {
                  concluded = true
                })
              })
            )
          )
          attempt = fiber
          if (unwanted && !durable) yield* Fiber.interruptFork(fiber)
          const exit = yield* Fiber.await(fiber)
          // A journal that fails while it accepts may have accepted: what it holds is gone on with.
          if (!durable && crashed(exit) && (yield* isKept(requestId))) {
            durable = true
            until = (yield* Clock.currentTimeMillis) + elsewhereMillis
            yield* Deferred.succeed(accepted, undefined)
          }
          if (!durable) return yield* Effect.asVoid(Deferred.done(result, exit))
          const failure = Exit.isFailure(exit) ? Option.getOrNull(Exit.causeOption(exit)) : null
          const expected = failure?._tag === "Fail" && concluded ? failure.error : null
          const now = yield* Clock.currentTimeMillis
          if (Exit.isFailure(exit) && expected === null) {
            const record = yield* load(requestId)
            if (record !== null && hopeless(record, now))
              yield* Effect.orDie(
                journal.abandon(
                  requestId,
                  record.ops.filter(({ state }) => state === "accepted").map(({ index }) => index)
                )
              )
            else {
              yield* Effect.logWarning("an accepted request could not go on and is tried again", exit.cause)
              yield* Effect.sleep(pauseMillis)
              return yield* lead(true, Math.min(pauseMillis * 2, longestPauseMillis))
            }
          }
          const answer: Either.Either<B, ReturnType<typeof Answer.asUnprocessable>> = Exit.isSuccess(exit)
            ? Either.right(exit.value)
            : Either.left(
                expected === null || expected._tag === "AnsweredElsewhere"
                  ? unprocessable("execution_failed", [
                      { path: "", message: "it was accepted, could not be sent, and was given up" }
                    ])
                  : Answer.asUnprocessable(expected)
              )
          // Something of it may have been undone by the chain in the meantime.
          if (!(yield* Effect.orDie(journal.finish(requestId, yield* Answer.encode(kind.Response, answer)))))
            return yield* lead(true, pauseMillis)
          yield* wakeUps.notify([requestId])
          yield* Either.match(answer, {
            onLeft: (error) => Deferred.fail(result, error),
            onRight: (value) => Deferred.succeed(result, value)
          })
        }).pipe(
          // The journal can not be written: the same again, a bit later.
          Effect.catchAllDefect((defect) =>
            Effect.logError("the journal of an accepted request fails", defect).pipe(
              Effect.zipRight(Effect.sleep(pauseMillis)),
              Effect.zipRight(Effect.suspend(() => lead(true, Math.min(pauseMillis * 2, longestPauseMillis))))
            )
          )
        )

      yield* Effect.forkIn(
        Effect.interruptible(lead(durable, firstPauseMillis)).pipe(
          Effect.onInterrupt(() => Deferred.interrupt(result)),
          Effect.ensuring(
            Effect.suspend(() => {
              live.delete(requestId)
              return Deferred.succeed(ended, undefined)
            })
          ),
          Effect.annotateLogs({ requestId, endpoint: kind.endpoint })
        ),
        scope
      )
      return {
        accepted,
        result,
        sent,
        until: () => until,
        abort: Effect.suspend(() => {
          unwanted = true
          return durable || attempt === null ? Effect.void : Effect.asVoid(Fiber.interruptFork(attempt))
        })
      }
    }).pipe(Effect.uninterruptible)

  /** Waits for begun work; it ends with the wait as long as it is not accepted. */
  const attended = <B, A, E>(begun: Live<B>, wait: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.onInterrupt(wait, () => begun.abort)

  return {
    idle: (requestId) =>
      Effect.suspend(() => {
        const ended = live.get(requestId)
        return ended === undefined ? Effect.void : Deferred.await(ended)
      }),
    run: (kind, caller, request, work) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const { idempotency, principal, requestId, resumed } = caller
          const body = JSON.stringify(yield* Effect.orDie(Schema.encode(kind.Request)(request)))
          type Begun = Live<(typeof kind)["Response"]["Type"]>
          const answer = (begun: Begun | null) =>
            begun === null
              ? restore(stored(kind, requestId))
              : attended(begun, restore(answerOf(kind, requestId, begun)))
          if (idempotency === undefined || idempotency === null || resumed === true)
            return yield* answer(yield* begin(kind, caller, body, work))
          const begun = yield* restore(
            claimed(
              JSON.stringify([principal.accountId, kind.endpoint, idempotency.key]),
              Effect.gen(function* () {
                const known = yield* Effect.orDie(
                  journal.requestOf(principal.accountId, kind.endpoint, idempotency.key)
                )
                if (known !== null) {
                  if (known.bodyHash !== idempotency.bodyHash)
                    return yield* Effect.fail(
                      invalid("idempotency_key_reused", [
                        { path: "Idempotency-Key", message: "it was used with another body; take a new key" }
                      ])
                    )
                  return known.requestId
                }
                return yield* Effect.uninterruptibleMask((allow) =>
                  Effect.tap(begin(kind, caller, body, work), (fresh) =>
                    fresh === null
                      ? Effect.void
                      : attended(
                          fresh,
                          allow(
                            Effect.raceFirst(
                              Deferred.await(fresh.accepted),
                              Effect.exit(Deferred.await(fresh.result))
                            )
                          )
                        )
                  )
                )
              })
            )
          )
          return yield* typeof begun === "string" ? restore(stored(kind, begun)) : answer(begun)
        })
      )
  }
}
