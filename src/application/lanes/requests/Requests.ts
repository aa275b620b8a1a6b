import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import * as Troubles from "../../observe/Troubles.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { Networks } from "../../ports/Networks.js"
import type { Replicas } from "../../ports/Replicas.js"
import * as Answer from "../../request/Answer.js"
import type { Caller } from "../../request/Caller.js"
import type { AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import type { ElementList } from "../../request/Elements.js"
import { type Failure, invalid } from "../../request/Failure.js"
import * as KeyOrder from "./KeyOrder.js"
import type { LaneClaims } from "./LaneClaims.js"
import type { OpenRequests } from "./OpenRequests.js"
import type { Task } from "./RequestActions.js"
import * as RequestWork from "./RequestWork.js"
import * as Room from "./Room.js"
import type { ScheduledRequests } from "./ScheduledRequests.js"
import * as Turns from "./Turns.js"
import type { WakeUps } from "./WakeUps.js"

/** A writing endpoint, as far as its requests outlive the process. */
export interface Kind<A, I, B, J> {
  readonly endpoint: string
  readonly Request: Schema.Codec<A, I>
  readonly Response: Schema.Codec<B, J>
  /** How many operations or accounts the request has. Default: one. */
  readonly elements?: (request: A) => number
  /** Default: `operations`. */
  readonly list?: ElementList
}

export interface Requests {
  /**
   * Runs a writing request, once per idempotency key, and answers with what became of it. Before acceptance an
   * interruption ends the work. After it the work belongs to the owner of its lane: it goes on to a stored answer,
   * whatever fails on the way, and the caller is told `outcome_unknown` when that takes longer than its patience.
   */
  readonly run: <A, I, B, J, R>(
    kind: Kind<A, I, B, J>,
    caller: Caller,
    request: A,
    work: Effect.Effect<B, Failure | AnsweredElsewhere, R>
  ) => Effect.Effect<B, Failure, Exclude<R, CurrentRequest>>
  /** Fails where `run` would refuse the account's request for what is open: to be asked before the request is read. */
  readonly room: Room.Room
  /** Whether this process works on the request. */
  readonly isWorkedOn: (requestId: string) => boolean
  /** The accepted requests that this process works on. */
  readonly underWay: () => ReadonlyArray<string>
  /** Something else has changed the request in the journal: this process's work on it goes on from there, or ends. */
  readonly review: (requestId: string) => Effect.Effect<void>
  /** Nobody waits for an accepted request any more. */
  readonly stopWaiting: Effect.Effect<void>
  /** Ends the work on the lane's accepted requests in this process: another one works on the lane. */
  readonly leave: (lane: Lane) => Effect.Effect<void>
}

export const Requests: Context.Key<Requests, Requests> = Context.Service("castellan/Requests")

/** How long a repeat waits whose chain has no profile any more, milliseconds. */
const usualPatienceMillis = 60_000

/** Whether the exit says what came of a request: nothing was to be done, or nothing was done. */
const isDecided = (exit: Exit.Exit<unknown, Failure>): boolean =>
  Exit.match(exit, {
    onSuccess: () => true,
    onFailure: (cause) =>
      Option.exists(
        Cause.findErrorOption(cause),
        ({ _tag, code }) => _tag === "Unprocessable" && code !== "outcome_unknown"
      )
  })

export const make = (options: {
  readonly requestJournal: RequestJournal["Service"]
  readonly networks: Networks["Service"]
  readonly wakeUps: WakeUps
  readonly claims: LaneClaims
  readonly openRequests: OpenRequests
  readonly scheduledRequests: ScheduledRequests
  readonly replicas: Replicas["Service"]
  readonly scope: Scope.Scope
}): Requests => {
  const { requestJournal, networks, openRequests, wakeUps } = options
  /** Done once nobody shall wait for a sent transaction any more. */
  const stopping = Deferred.makeUnsafe<void>()
  const live = new Map<
    string,
    Pick<RequestWork.RequestWork<unknown>, "dismiss" | "lane" | "leave" | "review">
  >()
  const keys = KeyOrder.make()
  const dependencies = { ...options, turns: Turns.make(), troubles: Troubles.make() }

  const outcomeUnknown = (
    { list }: { readonly list?: ElementList },
    requestId: string,
    sent: ReadonlyArray<Bytes32>
  ) =>
    Effect.flatMap(
      Effect.orElseSucceed(requestJournal.request(requestId), () => null),
      (record) => Effect.fail(RequestWork.outcomeUnknown(requestId, record, sent, list))
    )

  const patience = (millis: number) => Effect.raceFirst(Effect.sleep(millis), Deferred.await(stopping))

  /** How long the caller waits for a request that another process works on, or worked on before a restart. */
  const patienceFor = (requestId: string) =>
    Effect.gen(function* () {
      const record = yield* Effect.orElseSucceed(requestJournal.request(requestId), () => null)
      const profile = record === null ? null : yield* networks.profile(record.accountId, record.lane.chainId)
      return profile?.receiptTimeoutMillis ?? usualPatienceMillis
    })

  /** The answer of an accepted request on which something else works, or has worked. */
  const stored = <A, I, B, J>(
    kind: Kind<A, I, B, J>,
    requestId: string,
    { onAccepted }: Caller
  ): Effect.Effect<B, Failure> =>
    Effect.raceFirst(
      Effect.flatMap(
        wakeUps.until(
          requestId,
          // A journal that does not answer is asked again.
          Effect.match(requestJournal.request(requestId), {
            onFailure: () => null,
            onSuccess: (record) => {
              if (record !== null && record.outcome === null) onAccepted?.(requestId)
              return record?.outcome ?? null
            }
          })
        ),
        (outcome) => Answer.decode(kind.Response, outcome)
      ),
      Effect.flatMap(patienceFor(requestId), (millis) =>
        Effect.andThen(patience(millis), outcomeUnknown(kind, requestId, []))
      )
    )

  const answerOf = <A, I, B, J>(
    kind: Kind<A, I, B, J>,
    caller: Caller,
    { result, sent }: RequestWork.RequestWork<B>
  ): Effect.Effect<B, Failure> =>
    Effect.catchTags(result, {
      AnsweredElsewhere: (elsewhere) => stored(kind, elsewhere.requestId, caller),
      PatienceOver: () => outcomeUnknown(kind, caller.requestId, sent)
    })

  /** Begins the work; null: this process works on the request already. */
  const begin = <A, I, B, J, R>(
    kind: Kind<A, I, B, J>,
    caller: Caller,
    { body, elements }: Pick<Task<B, J, R>, "body" | "elements">,
    run: Effect.Effect<B, Failure | AnsweredElsewhere, R>
  ): Effect.Effect<RequestWork.RequestWork<B> | null, Failure, Exclude<R, CurrentRequest>> =>
    Effect.gen(function* () {
      const { principal, requestId, resumed } = caller
      if (live.has(requestId)) return null
      const refusal = resumed === true ? null : openRequests.refusal(principal.accountId)
      if (refusal !== null) return yield* refusal
      if (resumed !== true) openRequests.begin({ requestId, accountId: principal.accountId, elements })
      const { endpoint, Response } = kind
      let over = false
      const onEnd = (isAccepted: boolean) =>
        Effect.sync(() => {
          over = true
          live.delete(requestId)
          openRequests.end(requestId, isAccepted)
        })
      const task = { caller, endpoint, Response, body, elements, run, onEnd }
      const work = yield* RequestWork.begin(dependencies, task)
      if (!over) live.set(requestId, work)
      if (yield* Deferred.isDone(stopping)) yield* work.dismiss
      return work
    }).pipe(Effect.uninterruptible)

  /** Waits for begun work; it ends with the wait as long as it is not accepted. */
  const attended = <B, A, E>(begun: RequestWork.RequestWork<B>, wait: Effect.Effect<A, E>) =>
    Effect.onInterrupt(wait, () => begun.abort)

  /** The accepted request that has the key already; null: none. */
  const known = (endpoint: string, { idempotency, principal }: Caller) =>
    Effect.gen(function* () {
      if (idempotency === undefined || idempotency === null) return null
      const found = yield* Effect.mapError(
        requestJournal.requestOf(principal.accountId, endpoint, idempotency.key),
        RequestWork.unavailable
      )
      if (found === null) return null
      if (found.bodyHash !== idempotency.bodyHash)
        return yield* Effect.fail(
          invalid("idempotency_key_reused", [
            { path: "Idempotency-Key", message: "it was used with another body; take a new key" }
          ])
        )
      return found.requestId
    })

  /**
   * The answer of an idempotency key whose request has ended here without being accepted: another process may have
   * accepted one of the same key meanwhile, whose effects this one has seen.
   */
  const ofKey = <A, I, B, J>(
    kind: Kind<A, I, B, J>,
    caller: Caller,
    { lane }: RequestWork.RequestWork<B>,
    own: Effect.Effect<B, Failure>
  ) =>
    Effect.flatMap(Effect.exit(own), (exit) =>
      lane() !== null || !isDecided(exit)
        ? exit
        : Effect.flatMap(known(kind.endpoint, caller), (before) =>
            before === null ? exit : stored(kind, before, caller)
          )
    )

  return {
    room: Room.make({ openRequests, requestJournal, keys }),
    isWorkedOn: (requestId) => live.has(requestId),
    underWay: () => [...live].flatMap(([requestId, work]) => (work.lane() === null ? [] : requestId)),
    review: (requestId) =>
      Effect.andThen(
        Effect.suspend(() => live.get(requestId)?.review ?? Effect.void),
        wakeUps.notify([requestId])
      ),
    stopWaiting: Effect.andThen(
      Deferred.succeed(stopping, undefined),
      Effect.suspend(() => Effect.forEach([...live.values()], ({ dismiss }) => dismiss, { discard: true }))
    ),
    leave: ({ chainId, signer }) =>
      Effect.forEach(
        [...live.values()].filter((work) => {
          const lane = work.lane()
          return lane !== null && lane.chainId === chainId && lane.signer === signer
        }),
        (work) => work.leave,
        { discard: true }
      ),
    run: (kind, caller, request, work) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const { idempotency, principal, requestId, resumed } = caller
          const body = JSON.stringify(yield* Effect.orDie(Schema.encodeEffect(kind.Request)(request)))
          const content = { body, elements: kind.elements?.(request) ?? 1 }
          type Begun = RequestWork.RequestWork<(typeof kind)["Response"]["Type"]>
          const answer = (begun: Begun | null) =>
            begun === null
              ? restore(stored(kind, requestId, caller))
              : attended(begun, restore(answerOf(kind, caller, begun)))
          if (idempotency === undefined || idempotency === null || resumed === true)
            return yield* answer(yield* begin(kind, caller, content, work))
          const begun = yield* restore(
            keys.inOrder(
              { accountId: principal.accountId, endpoint: kind.endpoint, key: idempotency.key },
              Effect.gen(function* () {
                const before = yield* known(kind.endpoint, caller)
                if (before !== null) return before
                return yield* Effect.uninterruptibleMask((allow) =>
                  Effect.tap(begin(kind, caller, content, work), (fresh) =>
                    fresh === null ? Effect.void : attended(fresh, allow(fresh.decided))
                  )
                )
              })
            )
          )
          if (typeof begun === "string") return yield* restore(stored(kind, begun, caller))
          return yield* begun === null ? answer(begun) : restore(ofKey(kind, caller, begun, answer(begun)))
        })
      )
  }
}
