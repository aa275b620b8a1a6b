import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Troubles from "../observe/Troubles.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import type { Final } from "./Answer.js"
import * as Ended from "./Ended.js"

/**
 * Answers requests that have ended, and resumes the callers that wait for them.
 *
 * The process where the caller waits answers immediately. Without a waiting caller here, the owner of the lane answers
 * after two seconds, since another process may have the caller. One fiber serves all requests of a process, without a
 * fiber, timer or query per request.
 *
 * Gotchas: every process computes an answer from the journal's data, and the first stored answer stays.
 */
export interface Waiters {
  readonly affected: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  /** Elements of these requests were refused and may still land; callers do not wait until that is known. */
  readonly refused: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
  /** The final answer (JSON). Null: none in time, or only refused elements that may still land are left. */
  readonly wait: (requestId: string, millis: number) => Effect.Effect<string | null>
  /** Another process says that the request has changed: reads it now. */
  readonly recheck: (requestId: string) => Effect.Effect<void>
  /** Ends all waits, and refuses later ones. */
  readonly stop: Effect.Effect<void>
}

export interface Dependencies {
  readonly requestJournal: Pick<
    RequestJournal["Service"],
    "answer" | "ended" | "finalAmong" | "newestEvents" | "requests"
  >
  /** The endpoint's answer for an ended request; null: data for it cannot be read now. */
  readonly finalOf: (request: RequestRecord) => Effect.Effect<Final | null>
  readonly answered: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
}

/** Delay before the owner answers a request without a waiting caller. */
const patienceMillis = 2_000
const retryMillis = 1_000
/** Poll interval for answers of other processes, which may not be announced here; one query serves all waiters. */
const pollMillis = 1_000

interface Waiter {
  readonly deadline: number
  readonly resume: (outcome: string | null) => void
}

export const make = ({ answered, finalOf, requestJournal }: Dependencies) =>
  Effect.gen(function* () {
    const waiting = new Map<string, Set<Waiter>>()
    const due = new Map<string, number>()
    const inDoubt = new Set<string>()
    const bell = Latch.makeUnsafe(false)
    let polledAt = 0
    let isStopped = false

    const resume = (requestId: string, outcome: string | null): void => {
      for (const waiter of waiting.get(requestId) ?? []) waiter.resume(outcome)
      waiting.delete(requestId)
      inDoubt.delete(requestId)
      due.delete(requestId)
    }

    const answerDoubtful = (requestIds: ReadonlyArray<string>) =>
      Effect.map(requestJournal.requests(requestIds), (requests) => {
        for (const request of requests) if (Ended.isDecided(request)) resume(request.requestId, null)
      })

    const answer = (requestIds: ReadonlyArray<string>): Effect.Effect<void, JournalError> =>
      Effect.gen(function* () {
        const ended = yield* requestJournal.ended(requestIds)
        const doubtful = requestIds.filter(
          (requestId) => inDoubt.has(requestId) && !ended.includes(requestId)
        )
        if (doubtful.length > 0) yield* answerDoubtful(doubtful)
        if (ended.length === 0) return
        // Read before the requests: an event in between makes the answer void.
        const newest = yield* requestJournal.newestEvents(ended)
        // Concurrently: a request with silent nodes does not delay the others.
        const made = yield* Effect.forEach(
          yield* requestJournal.requests(ended),
          (request) => Effect.map(finalOf(request), (final) => ({ requestId: request.requestId, final })),
          { concurrency: "unbounded" }
        )
        const finals = made.flatMap(({ final, requestId }) =>
          final === null ? [] : [{ ...final, requestId, sequence: newest.get(requestId) ?? 0 }]
        )
        const stored = yield* requestJournal.answer(finals)
        const now = yield* MonotonicTime.millis
        const done = new Set<string>()
        for (const [place, { requestId }] of finals.entries()) {
          const outcome = stored[place] ?? null
          if (outcome === null) continue
          done.add(requestId)
          resume(requestId, outcome)
        }
        for (const requestId of ended)
          if (!done.has(requestId) && !due.has(requestId)) due.set(requestId, now + retryMillis)
        if (done.size > 0) yield* answered([...done])
      })

    const poll = (now: number): Effect.Effect<void, JournalError> =>
      Effect.gen(function* () {
        polledAt = now
        const final = yield* requestJournal.finalAmong([...waiting.keys()])
        if (final.length === 0) return
        for (const { outcome, requestId } of yield* requestJournal.requests(final))
          if (outcome !== null) resume(requestId, outcome)
      })

    const giveUp = (now: number): void => {
      for (const [requestId, waiters] of waiting) {
        for (const waiter of waiters)
          if (waiter.deadline <= now) {
            waiters.delete(waiter)
            waiter.resume(null)
          }
        if (waiters.size > 0) continue
        waiting.delete(requestId)
        inDoubt.delete(requestId)
      }
    }

    const trouble = {
      what: "requests at their ends could not be answered; retrying",
      place: "",
      isDelay: true
    }

    const turn = Effect.gen(function* () {
      const now = yield* MonotonicTime.millis
      const ripe = [...due].flatMap(([requestId, at]) => (at <= now ? [requestId] : []))
      for (const requestId of ripe) due.delete(requestId)
      if (ripe.length > 0)
        yield* Effect.tapCause(answer(ripe), () =>
          Effect.sync(() => {
            for (const requestId of ripe) due.set(requestId, now + retryMillis)
          })
        )
      if (waiting.size > 0 && now >= polledAt + pollMillis) yield* poll(now)
      giveUp(now)
    })

    const nextMillis = (now: number): number => {
      let next = waiting.size > 0 ? polledAt + pollMillis : Number.POSITIVE_INFINITY
      for (const at of due.values()) next = Math.min(next, at)
      for (const waiters of waiting.values())
        for (const { deadline } of waiters) next = Math.min(next, deadline)
      return Math.max(next - now, 1)
    }

    const rest = Effect.flatMap(MonotonicTime.millis, (now) => {
      const millis = nextMillis(now)
      return millis === Number.POSITIVE_INFINITY
        ? bell.await
        : Effect.raceFirst(bell.await, Effect.sleep(millis))
    })

    const troubles = yield* Troubles.Shared
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.suspend(() => {
          // Closed before the turn: a change during the turn opens it again.
          bell.closeUnsafe()
          return Effect.andThen(troubles.tolerate(trouble, turn), rest)
        })
      )
    )

    return {
      affected: (requestIds) =>
        Effect.map(MonotonicTime.millis, (now) => {
          for (const requestId of requestIds) {
            const at = waiting.has(requestId) ? now : now + patienceMillis
            due.set(requestId, Math.min(due.get(requestId) ?? at, at))
          }
          if (requestIds.length > 0) bell.openUnsafe()
        }),
      refused: (requestIds) =>
        Effect.sync(() => {
          for (const requestId of requestIds) if (waiting.has(requestId)) inDoubt.add(requestId)
        }),
      wait: (requestId, millis) =>
        Effect.flatMap(MonotonicTime.millis, (now) =>
          Effect.callback<string | null>((resumeWith) => {
            if (isStopped) return resumeWith(Effect.succeed(null))
            const waiter: Waiter = {
              deadline: now + millis,
              resume: (outcome) => resumeWith(Effect.succeed(outcome))
            }
            const own = waiting.get(requestId) ?? new Set()
            waiting.set(requestId, own.add(waiter))
            // It may have ended before the caller waited.
            if (due.has(requestId)) due.set(requestId, now)
            bell.openUnsafe()
            return Effect.sync(() => {
              own.delete(waiter)
              if (own.size === 0 && waiting.get(requestId) === own) waiting.delete(requestId)
            })
          })
        ),
      recheck: (requestId) =>
        Effect.sync(() => {
          if (!waiting.has(requestId)) return
          polledAt = Number.NEGATIVE_INFINITY
          bell.openUnsafe()
        }),
      stop: Effect.sync(() => {
        isStopped = true
        for (const waiters of waiting.values()) for (const waiter of waiters) waiter.resume(null)
        waiting.clear()
      })
    } satisfies Waiters
  })
