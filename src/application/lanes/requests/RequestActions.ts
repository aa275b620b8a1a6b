import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import type * as Troubles from "../../observe/Troubles.js"
import * as Holding from "../../ports/journal/Holding.js"
import { isFenced } from "../../ports/journal/JournalError.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { Replicas } from "../../ports/Replicas.js"
import * as Answer from "../../request/Answer.js"
import type { Caller } from "../../request/Caller.js"
import { AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import type { Failure } from "../../request/Failure.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import type { LaneClaims } from "./LaneClaims.js"
import type { OpenRequests } from "./OpenRequests.js"
import * as RequestState from "./RequestState.js"
import type { ScheduledRequests } from "./ScheduledRequests.js"
import type { Turn, Turns } from "./Turns.js"
import type { WakeUps } from "./WakeUps.js"

/** What the phases of `RequestState` do for one request: one function a phase, and the event that follows. */

export interface Dependencies {
  readonly requestJournal: RequestJournal["Service"]
  readonly wakeUps: WakeUps
  readonly claims: LaneClaims
  readonly openRequests: OpenRequests
  readonly scheduledRequests: ScheduledRequests
  readonly replicas: Replicas["Service"]
  readonly turns: Turns
  readonly troubles: Troubles.Troubles
  readonly scope: Scope.Scope
}

/** The caller of an accepted request waits no longer: its work goes on without it. */
export class PatienceOver extends Data.TaggedError("PatienceOver") {}

/** What the work is: an effect that is run until it has ended in a stored answer, and how that answer is written. */
export interface Task<B, J, R> {
  readonly caller: Caller
  readonly endpoint: string
  readonly Response: Schema.Codec<B, J>
  /** JSON of the request. */
  readonly body: string
  /** How many operations or accounts it has. */
  readonly elements: number
  readonly run: Effect.Effect<B, Failure | AnsweredElsewhere, R>
  /** Run when nothing works on it in this process any more, which may have accepted it. */
  readonly onEnd: (isAccepted: boolean) => Effect.Effect<void>
}

/** A journal that does not say whether it has accepted the request is asked again this often, milliseconds. */
const doubtPauseMillis = 250
/** How long a caller waits to hear whether a journal that failed has accepted the request, milliseconds. */
const doubtMillis = 20_000

/** One request's work, as far as its parts share it. */
export interface Live<B, J, R> {
  readonly dependencies: Dependencies
  readonly task: Task<B, J, R>
  /** It is accepted, or over. */
  readonly decided: Deferred.Deferred<void>
  /** What its caller is told. */
  readonly result: Deferred.Deferred<B, Failure | AnsweredElsewhere | PatienceOver>
  readonly sent: Array<Bytes32>
  /** Among the accepted requests of its account and chain. */
  readonly turn: Turn
  state: RequestState.State<Outcome<B>>
  /** Whether its caller is to wait no longer, once it is accepted. */
  isDismissed: boolean
  /** Tells its caller that it has waited long enough; null: nobody has said how long that is. */
  patience: Fiber.Fiber<unknown> | null
  lane: Lane | null
  /** The claim of its lane under which the present attempt began; null: none, as far as is known. */
  holding: Holding.Holding | null
  /** When it was accepted, Unix milliseconds; null: not known. */
  acceptedAt: number | null
  /** The attempt, or the pause before the next one: what may be ended from outside. */
  interruptible: Fiber.Fiber<unknown, unknown> | null
  exit: Exit.Exit<B, Failure | AnsweredElsewhere> | null
}

/** What the answer of an accepted request is. */
export type Outcome<B> = Result.Result<B, ReturnType<typeof Answer.asUnprocessable>>
export type Event<B> = RequestState.Event<Outcome<B>>

const goesOn = "an accepted request could not go on and is tried again"
const fails = "the journal of an accepted request fails"

/** Nothing is known of the lane of a request that was not accepted. */
export const failedBefore: Troubles.Trouble = {
  what: "the journal failed before it had accepted a request",
  place: "",
  isDelay: true
}

/** What fails again and again is told by lane. */
export const troubleOf = <B, J, R>({ lane, task }: Live<B, J, R>, what: string) => ({
  what,
  place: lane === null ? "" : `${lane.chainId}:${lane.signer}`,
  subject: task.caller.requestId
})

/** It has come to an end in this process, whatever failed on the way. */
export const untroubled = <B, J, R>(live: Live<B, J, R>): Effect.Effect<void> =>
  Effect.forEach([goesOn, fails], (what) => live.dependencies.troubles.passed(troubleOf(live, what)), {
    discard: true
  })

/** What has happened to it. */
export const tell = <B, J, R>(live: Live<B, J, R>, event: Event<B>): void => {
  live.state = RequestState.step(live.state, event)
}

export const isAccepted = <B, J, R>({ state }: Live<B, J, R>): boolean => state.acceptance === "accepted"

const load = <B, J, R>({ dependencies, task }: Live<B, J, R>) =>
  Effect.orDie(dependencies.requestJournal.request(task.caller.requestId))

/** Tells the caller that it is accepted, which holds whatever becomes of the machine. */
const promise = <B, J, R>({ dependencies, task }: Live<B, J, R>) =>
  Effect.ignoreCause(
    Effect.map(dependencies.requestJournal.durable, () => task.caller.onAccepted?.(task.caller.requestId)),
    { log: "Debug" }
  )

/** Its caller waits no longer, if it is accepted; else from when it is. */
export const dismiss = <B, J, R>(live: Live<B, J, R>): Effect.Effect<void> =>
  Effect.suspend(() => {
    live.isDismissed = true
    return isAccepted(live) ? Effect.asVoid(Deferred.fail(live.result, new PatienceOver())) : Effect.void
  })

/** For so long its caller waits from now on. */
const waitFor = <B, J, R>(live: Live<B, J, R>, patienceMillis: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    live.patience?.interruptUnsafe()
    const late = Effect.delay(Deferred.fail(live.result, new PatienceOver()), patienceMillis)
    live.patience = yield* Effect.forkIn(late, live.dependencies.scope)
  })

const becameDurable = <B, J, R>(live: Live<B, J, R>, lane: Lane, patienceMillis: number) =>
  Effect.gen(function* () {
    tell(live, { _tag: "accepted" })
    live.dependencies.openRequests.end(live.task.caller.requestId, true)
    yield* live.dependencies.troubles.passed(failedBefore)
    live.lane = lane
    live.acceptedAt ??= yield* Clock.currentTimeMillis
    yield* Deferred.succeed(live.decided, undefined)
    // Before its patience begins: what is scheduled has none, and 202 may wait for the disk.
    if (live.task.caller.onAccepted !== undefined) yield* promise(live)
    // What goes again is accepted again, which gives its caller no more time: see `extend`.
    if (live.patience === null) yield* waitFor(live, patienceMillis)
    if (live.isDismissed) yield* dismiss(live)
  })

/** Whether this process is to go on with the accepted request. */
const isOurs = <B, J, R>(live: Live<B, J, R>) =>
  Effect.gen(function* () {
    if (live.state.isElsewhere) return false
    if (live.lane === null) {
      const record = yield* load(live)
      live.lane = record?.lane ?? null
      live.acceptedAt = record?.acceptedAt ?? null
    }
    if (live.lane === null || (yield* Effect.orDie(live.dependencies.claims.take(live.lane)))) return true
    tell(live, { _tag: "left" })
    return false
  })

const currentOf = <B, J, R>(
  live: Live<B, J, R>,
  resumed: boolean,
  begun: { holding: Holding.Holding | null }
): CurrentRequest["Service"] => {
  const { body, caller, elements } = live.task
  const { scheduledRequests } = live.dependencies
  const accept: CurrentRequest["Service"]["accept"] = (acceptance, patienceMillis) =>
    Effect.gen(function* () {
      const { claims } = live.dependencies
      // Before anybody can know of it: who has the lane in between gives up what this attempt has in mind.
      const isHeld = yield* Effect.orElseSucceed(claims.take(acceptance.lane), () => false)
      const holding = isHeld ? claims.holding(acceptance.lane) : null
      const answer = yield* Effect.uninterruptible(
        Effect.suspend(() => {
          tell(live, { _tag: "offered" })
          return Effect.tap(
            Effect.orDie(
              live.dependencies.requestJournal.acceptOps({
                ...acceptance,
                elements,
                metadata: caller.metadata ?? {}
              })
            ),
            ({ _tag }): Effect.Effect<void> =>
              _tag === "accepted"
                ? becameDurable(live, acceptance.lane, patienceMillis)
                : Effect.sync(() => tell(live, { _tag: "notAccepted" }))
          )
        })
      )
      if (answer._tag === "known") return yield* new AnsweredElsewhere({ requestId: answer.requestId })
      if (answer._tag !== "accepted") return answer
      const isHere = (yield* isOurs(live)) && holding !== null
      if (!isHere) return yield* new AnsweredElsewhere({ requestId: caller.requestId })
      live.holding = holding
      begun.holding = holding
      return answer
    })
  return {
    body,
    idempotency: caller.idempotency ?? null,
    resumed,
    accepted: () => isAccepted(live),
    relies: [],
    accept,
    schedule: (acceptance, schedule) =>
      Effect.gen(function* () {
        if (isAccepted(live))
          yield* Effect.orDie(live.dependencies.requestJournal.schedule(caller.requestId, schedule))
        else {
          yield* Effect.catchTag(
            scheduledRequests.enter({ accountId: caller.principal.accountId, elements }),
            "JournalError",
            Effect.die
          )
          yield* accept({ ...acceptance, schedule }, 0)
        }
        return yield* new AnsweredElsewhere({ requestId: caller.requestId, isScheduled: true })
      }),
    extend: (patienceMillis) => waitFor(live, patienceMillis),
    dismiss: dismiss(live),
    sent: (txHashes) => Effect.sync(() => void live.sent.push(...txHashes)),
    work: Effect.suspend(() => (isAccepted(live) ? live.turn.take : Effect.void)),
    rest: live.turn.leave,
    conclude: Effect.sync(() => tell(live, { _tag: "concluded" }))
  }
}

/** What the attempt's exit says. */
const attemptedOf = <B>(
  exit: Exit.Exit<B, Failure | AnsweredElsewhere>
): RequestState.Attempted<Outcome<B>> => {
  if (Exit.isSuccess(exit)) return { _tag: "done", answer: Result.succeed(exit.value) }
  if (isFenced(exit.cause)) return { _tag: "fenced" }
  // A part of it that failed while it was interrupted says nothing of the others.
  const failure = Cause.hasInterrupts(exit.cause) ? null : Option.getOrNull(Cause.findErrorOption(exit.cause))
  if (failure === null) return { _tag: "broken" }
  return failure._tag === "AnsweredElsewhere"
    ? { _tag: failure.isScheduled === true ? "scheduled" : "broken" }
    : { _tag: "failed", answer: Result.fail(Answer.asUnprocessable(failure)) }
}

/** How the fiber ends, which may be from outside. */
const ended = <A, E, B, J, R>(
  live: Live<B, J, R>,
  fiber: Fiber.Fiber<A, E>
): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.gen(function* () {
    live.interruptible = fiber
    if (RequestState.isStopped(live.state)) yield* Effect.sync(() => fiber.interruptUnsafe())
    return yield* Fiber.await(fiber)
  })

const attempt = <B, J, R>(
  live: Live<B, J, R>,
  resumed: boolean
): Effect.Effect<Event<B>, never, Exclude<R, CurrentRequest>> =>
  Effect.gen(function* () {
    const began = yield* MonotonicTime.millis
    // A fiber of its own: an interruption that is meant for it shall not end what is around it.
    // What is left of an attempt that was interrupted has nothing of the next one's claim.
    const begun = { holding: live.holding }
    const current = currentOf(live, resumed, begun)
    const fiber = yield* Effect.forkChild(
      Effect.interruptible(
        Effect.provideService(Effect.andThen(current.work, live.task.run), CurrentRequest, current).pipe(
          Effect.provideService(Holding.begun, begun)
        )
      ).pipe(Effect.ensuring(live.turn.leave))
    )
    live.exit = yield* ended(live, fiber)
    const lastedMillis = (yield* MonotonicTime.millis) - began
    return { _tag: "attempted", attempted: attemptedOf(live.exit), lastedMillis }
  })

/** Ends early when the journal has something new of it, or another process has it. */
const pause = <B, J, R>(live: Live<B, J, R>, millis: number): Effect.Effect<Event<B>> =>
  Effect.gen(function* () {
    yield* ended(live, yield* Effect.forkChild(Effect.interruptible(Effect.sleep(millis))))
    return { _tag: "paused" }
  })

/** A journal that failed while it accepted may have accepted, or may do so yet: it decides now. */
const resolveDoubt = <B, J, R>(live: Live<B, J, R>): Effect.Effect<Event<B>> =>
  live.dependencies.requestJournal.decline(live.task.caller.requestId).pipe(
    Effect.retry(Schedule.spaced(doubtPauseMillis)),
    Effect.orDie,
    Effect.timeoutOption(doubtMillis),
    Effect.flatMap(
      Option.match({
        onNone: () => Effect.succeed<Event<B>>({ _tag: "doubtLasts" }),
        onSome: (lane) =>
          lane === null
            ? Effect.succeed<Event<B>>({ _tag: "declined" })
            : Effect.as(becameDurable(live, lane, doubtMillis), { _tag: "accepted" } as const)
      })
    )
  )

/** Whether the journal has a final answer of a request whose attempt has none. */
const judge = <B, J, R>(live: Live<B, J, R>): Effect.Effect<Event<B>> =>
  Effect.gen(function* () {
    const record = yield* load(live)
    if (record !== null && record.outcome !== null) return { _tag: "final" }
    if (live.exit !== null && Exit.isFailure(live.exit) && !Cause.hasInterruptsOnly(live.exit.cause))
      yield* live.dependencies.troubles.failed({ ...troubleOf(live, goesOn), isDelay: true }, live.exit.cause)
    return { _tag: "open" }
  })

/** Stores the answer and tells it. */
const finish = <B, J, R>(live: Live<B, J, R>, answer: Outcome<B>): Effect.Effect<Event<B>> =>
  Effect.gen(function* () {
    const { openRequests, replicas, requestJournal, wakeUps } = live.dependencies
    const { caller, Response } = live.task
    const { requestId } = caller
    const stored = yield* Answer.encode(Response, answer)
    const kept = yield* Effect.orDie(requestJournal.finish(requestId, stored, Answer.summary(answer)))
    if (kept === null) return { _tag: "notStored" }
    openRequests.close(requestId)
    yield* wakeUps.notify([requestId])
    yield* replicas.tell({ _tag: "final", requestId })
    // A cancellation may have been quicker.
    yield* Deferred.complete(
      live.result,
      kept === stored ? Effect.fromResult(answer) : Answer.decode(Response, kept)
    )
    return { _tag: "stored" }
  })

type Going<B> = Exclude<RequestState.Phase<Outcome<B>>, { readonly _tag: "ended" }>

/** Does what the phase says, and gives what came of it. */
export const perform = <B, J, R>(
  live: Live<B, J, R>,
  phase: Going<B>
): Effect.Effect<Event<B>, never, Exclude<R, CurrentRequest>> => {
  switch (phase._tag) {
    case "attempting":
      return attempt(live, phase.isResumed)
    case "doubting":
      return resolveDoubt(live)
    case "claiming":
      return Effect.map(isOurs(live), (ours) => {
        if (phase.next === "attempt")
          live.holding = live.lane === null ? null : live.dependencies.claims.holding(live.lane)
        return { _tag: ours ? "ours" : "notOurs" }
      })
    case "judging":
      return judge(live)
    case "finishing":
      return Effect.provideService(finish(live, phase.answer), Holding.begun, { holding: live.holding })
    case "pausing":
      return pause(live, phase.millis)
  }
}
