import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import { isFenced } from "../../ports/journal/JournalError.js"
import type { RequestRecord } from "../../ports/journal/Requests.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import { catalogue } from "../../request/Catalogue.js"
import { AnsweredElsewhere, type CurrentRequest } from "../../request/CurrentRequest.js"
import * as Elements from "../../request/Elements.js"
import { type Failure, Unavailable, unprocessable } from "../../request/Failure.js"
import * as StoreFailure from "../../request/StoreFailure.js"
import {
  type Dependencies,
  dismiss,
  type Event,
  failedBefore,
  isAccepted,
  type Live,
  type PatienceOver,
  perform,
  type Task,
  tell,
  troubleOf,
  untroubled
} from "./RequestActions.js"
import * as RequestState from "./RequestState.js"

/** A request that is worked on in this process. */
export interface RequestWork<B> {
  /** It is accepted, or over. */
  readonly decided: Effect.Effect<void>
  /** What its caller is told. */
  readonly result: Effect.Effect<B, Failure | AnsweredElsewhere | PatienceOver>
  /** Its caller waits no longer, if it is accepted; else from when it is. */
  readonly dismiss: Effect.Effect<void>
  /** Of transactions beside those that the journal counts to it. */
  readonly sent: ReadonlyArray<Bytes32>
  /** Its lane, once it is accepted. */
  readonly lane: () => Lane | null
  /** Ends the work when it is not accepted yet; nothing else. */
  readonly abort: Effect.Effect<void>
  /** Ends the attempt, or the pause before the next one: the work goes on where the journal says, which something else has changed, or is over. */
  readonly review: Effect.Effect<void>
  /** Ends the work in this process: another one goes on with it. */
  readonly leave: Effect.Effect<void>
}

/** The operator hears what its callers do not. */
const noted = <B, J, R>({ dependencies, exit }: Live<B, J, R>): Effect.Effect<void> =>
  exit !== null && Exit.isFailure(exit) && StoreFailure.isIn(exit.cause)
    ? dependencies.troubles.failed(failedBefore, exit.cause)
    : Effect.void

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

/** What is known of a request that is not final: its transactions, and why elements of it have come to nothing. */
export const outcomeUnknown = (
  requestId: string,
  record: Pick<RequestRecord, "failed" | "txHashes"> | null,
  sent: ReadonlyArray<Bytes32>,
  list: Elements.ElementList = "operations"
) => {
  const txHashes = [...(record?.txHashes ?? []), ...sent]
  const details = Elements.detailsOf(list, Elements.ofJournal(record?.failed ?? []))
  return unprocessable("outcome_unknown", details, {
    extra: { txHash: txHashes.at(-1) ?? "", txHashes, requestId }
  })
}

/** Tells the end of the work in this process to those who wait for it here. */
const conclude = <B, J, R>(live: Live<B, J, R>, end: RequestState.End): Effect.Effect<void> => {
  const { dependencies, exit, lane, result, task } = live
  const { requestId } = task.caller
  // Made where it is needed: an error takes its stack with it.
  const inJournal = Effect.suspend(() =>
    Effect.asVoid(Deferred.fail(result, new AnsweredElsewhere({ requestId })))
  )
  const elsewhere = Effect.suspend(() =>
    lane === null ? Effect.void : dependencies.replicas.tell({ _tag: "accepted", lane })
  ).pipe(Effect.andThen(inJournal))
  switch (end) {
    case "unaccepted":
      return exit === null ? Effect.void : Effect.andThen(noted(live), Deferred.done(result, refused(exit)))
    case "unknown":
      return Effect.andThen(noted(live), Deferred.fail(result, outcomeUnknown(requestId, null, [])))
    case "elsewhere":
      return elsewhere
    // What the journal has refused for the sake of another process ends here. The sweep takes it up should it come back.
    case "fenced":
      return Effect.andThen(lane === null ? Effect.void : dependencies.claims.lose(lane), elsewhere)
    case "scheduled":
      return inJournal
    case "answered":
      return Effect.void
  }
}

const lead = <B, J, R>(
  live: Live<B, J, R>
): Effect.Effect<RequestState.End, never, Exclude<R, CurrentRequest>> =>
  Effect.gen(function* () {
    for (;;) {
      const { phase } = live.state
      if (phase._tag === "ended") return yield* Effect.as(untroubled(live), phase.as)
      const event = yield* Effect.catchDefect(
        perform(live, phase),
        (defect): Effect.Effect<Event<B>> =>
          isFenced(Cause.die(defect))
            ? Effect.succeed({ _tag: "fenced" })
            : Effect.as(
                live.dependencies.troubles.failed(
                  troubleOf(live, "the journal of an accepted request fails"),
                  Cause.die(defect)
                ),
                { _tag: "journalFailed" }
              )
      )
      tell(live, event)
    }
  })

/**
 * Begins the work in a fiber of the engine. Before acceptance it ends with its caller. From then on it goes on to a
 * stored answer, whatever fails on the way, as long as the request's lane is this process's. What is done for it is said
 * by `RequestState`.
 */
export const begin = <B, J, R>(
  dependencies: Dependencies,
  task: Task<B, J, R>
): Effect.Effect<RequestWork<B>, never, Exclude<R, CurrentRequest>> =>
  Effect.gen(function* () {
    const { caller, endpoint } = task
    const live: Live<B, J, R> = {
      dependencies,
      task,
      decided: yield* Deferred.make<void>(),
      result: yield* Deferred.make<B, Failure | AnsweredElsewhere | PatienceOver>(),
      sent: [],
      turn: dependencies.turns(
        () => `${caller.principal.accountId} ${live.lane?.chainId}`,
        () => live.acceptedAt ?? 0
      ),
      state: RequestState.begin(caller.resumed === true),
      isDismissed: false,
      patience: null,
      lane: null,
      holding: null,
      acceptedAt: null,
      interruptible: null,
      exit: null
    }
    const { decided, result, sent } = live

    const end = (unless: () => boolean) =>
      Effect.suspend(() =>
        unless() ? Effect.void : Effect.sync(() => live.interruptible?.interruptUnsafe())
      )

    // Interrupted at any moment, before it begins as well, it tells those who wait: they go on at once, when it is over.
    const leading = yield* Effect.forkDetach(
      Effect.interruptible(lead(live)).pipe(
        Effect.ensuring(
          Effect.suspend(() => {
            live.patience?.interruptUnsafe()
            return task.onEnd(isAccepted(live))
          })
        ),
        Effect.flatMap((end) => conclude(live, end)),
        Effect.catchCause((cause) => Deferred.failCause(result, cause)),
        Effect.andThen(Deferred.succeed(decided, undefined)),
        Effect.annotateLogs({ requestId: caller.requestId, endpoint })
      ),
      { uninterruptible: true }
    )
    Fiber.runIn(leading, dependencies.scope)
    return {
      decided: Deferred.await(decided),
      result: Deferred.await(result),
      dismiss: dismiss(live),
      sent,
      lane: () => live.lane,
      abort: Effect.suspend(() => {
        tell(live, { _tag: "unwanted" })
        return end(() => isAccepted(live))
      }),
      review: end(() => !isAccepted(live)),
      leave: Effect.suspend(() => {
        tell(live, { _tag: "left" })
        return end(() => false)
      })
    }
  })
