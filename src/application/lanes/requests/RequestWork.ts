import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import { isFenced } from "../../ports/journal/JournalError.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { Replicas } from "../../ports/Replicas.js"
import * as Answer from "../../request/Answer.js"
import type { Caller } from "../../request/Caller.js"
import { catalogue } from "../../request/Catalogue.js"
import { AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import { type Failure, Unavailable, unprocessable } from "../../request/Failure.js"
import * as StoreFailure from "../../request/StoreFailure.js"
import type { LaneClaims } from "./LaneClaims.js"
import type { WakeUps } from "./WakeUps.js"

/** A request that is worked on in this process. */
export interface RequestWork<B> {
  readonly accepted: Deferred.Deferred<void>
  /** Until when its caller waits, Unix milliseconds, once it is accepted. */
  readonly until: () => number
  readonly result: Deferred.Deferred<B, Failure | AnsweredElsewhere>
  /** Of transactions beside those that the journal counts to it. */
  readonly sent: ReadonlyArray<Bytes32>
  /** Its lane, once it is accepted. */
  readonly lane: () => Lane | null
  /** Ends the work when it is not accepted yet; nothing else. */
  readonly abort: Effect.Effect<void>
  /** Ends the attempt: the work goes on where the journal says, which something else has changed, or is over. */
  readonly review: Effect.Effect<void>
  /** Ends the work in this process: another one goes on with it. */
  readonly leave: Effect.Effect<void>
}

export interface Dependencies {
  readonly requestJournal: RequestJournal["Type"]
  readonly wakeUps: WakeUps
  readonly claims: LaneClaims
  readonly replicas: Replicas["Type"]
  readonly scope: Scope.Scope
}

/** What the work is: an effect that is run until it has ended in a stored answer, and how that answer is written. */
export interface Task<B, J, R> {
  readonly caller: Caller
  readonly endpoint: string
  readonly Response: Schema.Schema<B, J>
  /** JSON of the request. */
  readonly body: string
  readonly run: Effect.Effect<B, Failure | AnsweredElsewhere, R>
  /** Run when nothing works on it in this process any more. */
  readonly onEnd: Effect.Effect<void>
}

/** Pause before an accepted request that could not go on is tried again, at first and at most. */
const firstPauseMillis = 250
const longestPauseMillis = 30_000
/** How long a caller waits to hear whether a journal that failed has accepted the request, milliseconds. */
const doubtMillis = 20_000

/** What the caller of a request that was not accepted is told. */
const refused = <B>(
  exit: Exit.Exit<B, Failure | AnsweredElsewhere>
): Exit.Exit<B, Failure | AnsweredElsewhere> =>
  Exit.isFailure(exit) && StoreFailure.isIn(exit.cause) ? Exit.fail(unavailable()) : exit

/** The journal does not answer, and nothing was accepted: the same request may be made again. */
export const unavailable = (): Unavailable =>
  new Unavailable({
    code: "unavailable",
    message: catalogue.unavailable.text,
    details: [],
    retryAfterSeconds: 1
  })

export const outcomeUnknown = (requestId: string, txHashes: ReadonlyArray<Bytes32>) =>
  unprocessable("outcome_unknown", [], {
    extra: { txHash: txHashes.at(-1) ?? "", txHashes, requestId }
  })

/**
 * Begins the work in a fiber of the engine. Before acceptance it ends with its caller. From then on it goes on to a
 * stored answer, whatever fails on the way, as long as the request's lane is this process's.
 */
export const begin = <B, J, R>(
  { claims, replicas, requestJournal, scope, wakeUps }: Dependencies,
  task: Task<B, J, R>
): Effect.Effect<RequestWork<B>, never, Exclude<R, CurrentRequest>> =>
  Effect.gen(function* () {
    const { body, caller, endpoint, Response } = task
    const { requestId } = caller
    const accepted = yield* Deferred.make<void>()
    const result = yield* Deferred.make<B, Failure | AnsweredElsewhere>()
    const sent: Array<Bytes32> = []
    const state = {
      until: 0,
      lane: null as Lane | null,
      durable: caller.resumed === true,
      /** Something was offered to the journal: whether it is durable is not known until `durable` says so. */
      offered: false,
      concluded: false,
      unwanted: false,
      /** Another process works on the lane. */
      elsewhere: false,
      attempt: null as Fiber.RuntimeFiber<B, Failure | AnsweredElsewhere> | null
    }

    const load = Effect.orDie(requestJournal.request(requestId))

    const becameDurable = (lane: Lane, patienceMillis: number) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        state.durable = true
        state.lane = lane
        state.until = now + patienceMillis
        caller.onAccepted?.(requestId)
        return Effect.asVoid(Deferred.succeed(accepted, undefined))
      })

    /** Whether this process is to go on with the accepted request. */
    const isOurs = Effect.gen(function* () {
      if (state.elsewhere) return false
      state.lane ??= (yield* load)?.lane ?? null
      if (state.lane === null || (yield* Effect.orDie(claims.take(state.lane)))) return true
      state.elsewhere = true
      return false
    })

    const toElsewhere = Effect.suspend(() =>
      state.lane === null ? Effect.void : replicas.tell({ _tag: "accepted", lane: state.lane })
    ).pipe(Effect.zipRight(Deferred.fail(result, new AnsweredElsewhere({ requestId }))), Effect.asVoid)

    /** What the journal has refused for the sake of another process ends here. The sweep takes it up should it come back. */
    const toNewOwner = Effect.suspend(() => {
      state.elsewhere = true
      const told = state.lane === null ? Effect.void : claims.lose(state.lane)
      return Effect.zipRight(told, toElsewhere)
    })

    const current = (resumed: boolean): CurrentRequest["Type"] => ({
      body,
      idempotency: caller.idempotency ?? null,
      resumed,
      accepted: () => state.durable,
      relies: [],
      accept: (acceptance, patienceMillis) =>
        Effect.gen(function* () {
          const answer = yield* Effect.uninterruptible(
            Effect.suspend(() => {
              state.offered = true
              return Effect.tap(Effect.orDie(requestJournal.accept(acceptance)), ({ _tag }) => {
                if (_tag === "accepted") return becameDurable(acceptance.lane, patienceMillis)
                state.offered = false
                return Effect.void
              })
            })
          )
          if (answer._tag === "known") return yield* new AnsweredElsewhere({ requestId: answer.requestId })
          if (answer._tag === "accepted" && !(yield* isOurs))
            return yield* new AnsweredElsewhere({ requestId })
          return answer
        }),
      extend: (patienceMillis) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          state.until = now + patienceMillis
        }),
      sent: (txHashes) => Effect.sync(() => void sent.push(...txHashes)),
      conclude: Effect.sync(() => {
        state.concluded = true
      })
    })

    /** A journal that failed while it accepted may have accepted, or may do so yet: it decides now. */
    const resolveDoubt = Effect.gen(function* () {
      const lane = yield* requestJournal
        .decline(requestId)
        .pipe(
          Effect.retry(Schedule.spaced(firstPauseMillis)),
          Effect.orDie,
          Effect.timeoutFail({ duration: doubtMillis, onTimeout: () => outcomeUnknown(requestId, []) })
        )
      if (lane !== null) yield* becameDurable(lane, doubtMillis)
    })

    const attempt = (resumed: boolean) =>
      Effect.gen(function* () {
        state.concluded = false
        // A fiber of its own: an interruption that is meant for it shall not end what is around it.
        const fiber = yield* Effect.fork(
          Effect.interruptible(Effect.provideService(task.run, CurrentRequest, current(resumed)))
        )
        state.attempt = fiber
        if ((state.unwanted && !state.durable) || state.elsewhere) yield* Fiber.interruptFork(fiber)
        return yield* Fiber.await(fiber)
      })

    /** Stores the answer and tells it; false: the chain has undone something of it in the meantime. */
    const finish = (answer: Either.Either<B, ReturnType<typeof Answer.asUnprocessable>>) =>
      Effect.gen(function* () {
        const outcome = yield* Answer.encode(Response, answer)
        if (!(yield* Effect.orDie(requestJournal.finish(requestId, outcome, Answer.summary(answer)))))
          return false
        yield* wakeUps.notify([requestId])
        yield* replicas.tell({ _tag: "final", requestId })
        yield* Either.match(answer, {
          onLeft: (error) => Deferred.fail(result, error),
          onRight: (value) => Deferred.succeed(result, value)
        })
        return true
      })

    /**
     * Of a request that is durable now, what its attempt has come to: `again`, it is to be tried again; `elsewhere`, it
     * has a final answer that is not this attempt's.
     */
    const judge = (exit: Exit.Exit<B, Failure | AnsweredElsewhere>) =>
      Effect.gen(function* () {
        if (Exit.isSuccess(exit)) return Either.right(exit.value)
        const failure = Option.getOrNull(Cause.failureOption(exit.cause))
        if (failure !== null && failure._tag !== "AnsweredElsewhere" && state.concluded)
          return Either.left(Answer.asUnprocessable(failure))
        const record = yield* load
        if (record !== null && record.outcome !== null) return "elsewhere" as const
        if (!Cause.isInterruptedOnly(exit.cause))
          yield* Effect.logWarning("an accepted request could not go on and is tried again", exit.cause)
        return "again" as const
      })

    const lead = (
      resumed: boolean,
      pauseMillis: number
    ): Effect.Effect<void, never, Exclude<R, CurrentRequest>> => {
      const again = Effect.suspend(() => lead(true, Math.min(pauseMillis * 2, longestPauseMillis)))
      return Effect.gen(function* () {
        if (state.durable && !(yield* isOurs)) return yield* toElsewhere
        const exit = yield* attempt(resumed)
        if (!state.durable && state.offered) {
          const doubt = yield* Effect.either(resolveDoubt)
          if (Either.isLeft(doubt)) return yield* Effect.asVoid(Deferred.fail(result, doubt.left))
        }
        if (!state.durable) return yield* Effect.asVoid(Deferred.done(result, refused(exit)))
        if (Exit.isFailure(exit) && isFenced(exit.cause)) return yield* toNewOwner
        if (!Exit.isSuccess(exit) && !(yield* isOurs)) return yield* toElsewhere
        const answer = yield* judge(exit)
        if (answer === "elsewhere") return yield* toElsewhere
        if (answer === "again") return yield* Effect.zipRight(Effect.sleep(pauseMillis), again)
        if (!(yield* finish(answer))) return yield* lead(true, pauseMillis)
      }).pipe(
        // The journal can not be written: the same again, a bit later.
        Effect.catchAllDefect((defect) =>
          isFenced(Cause.die(defect))
            ? toNewOwner
            : Effect.logError("the journal of an accepted request fails", defect).pipe(
                Effect.zipRight(Effect.sleep(pauseMillis)),
                Effect.zipRight(again)
              )
        )
      )
    }

    const end = (unless: () => boolean) =>
      Effect.suspend(() =>
        unless() || state.attempt === null ? Effect.void : Effect.asVoid(Fiber.interruptFork(state.attempt))
      )

    yield* Effect.forkIn(
      Effect.interruptible(lead(state.durable, firstPauseMillis)).pipe(
        Effect.onInterrupt(() => Deferred.interrupt(result)),
        Effect.ensuring(task.onEnd),
        Effect.annotateLogs({ requestId, endpoint })
      ),
      scope
    )
    return {
      accepted,
      result,
      sent,
      until: () => state.until,
      lane: () => state.lane,
      abort: Effect.suspend(() => {
        state.unwanted = true
        return end(() => state.durable)
      }),
      review: end(() => !state.durable),
      leave: Effect.suspend(() => {
        state.elsewhere = true
        return end(() => false)
      })
    }
  })
