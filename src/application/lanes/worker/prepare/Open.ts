import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Unopened } from "../../../ports/journal/Records.js"
import * as Slices from "../../../prepare/ops/Slices.js"
import { mayGiveUp, pause, requestKey, requestKeys, type State, type Work, whole } from "../LaneState.js"
import * as Reprice from "../Reprice.js"
import { examine, isExamined } from "../recovery/Unknown.js"
import { type Context, isRemote } from "../rules/Context.js"
import * as Pauses from "../rules/Pauses.js"
import * as Queue from "../rules/Queue.js"
import * as Reconcile from "../rules/Reconcile.js"

/**
 * Elements of accepted requests without ops: slices of large requests, and elements whose windows have begun. A lane's worker
 * opens them when it has room; the journal stores a number and one time per request.
 */

/** Requests of one account with the same settings and elements to open. */
export interface Due {
  readonly context: Context
  readonly requests: ReadonlyArray<Unopened>
}

const page = 64
/** Maximum transactions in flight of a request that is being opened: its wallets keep nonce keys for other requests. */
const mostInFlight = 4
/** Recheck interval without room, milliseconds. */
const roomMillis = 250
/** Recheck interval while elements wait for work that a restored journal may have lost, milliseconds. */
const lostMillis = 2_000
/** Longest sleep, milliseconds: due times follow a clock different from the worker's. */
const longestMillis = 60_000

const count = <A>(items: Iterable<A>): ReadonlyMap<A, number> => {
  const counts = new Map<A, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}

const isPaused = (state: State, { requestId }: Unopened, now: number): boolean =>
  Pauses.isPaused(state.pauses, requestKey(requestId), now)

/** Requests with room: their account has less than a bundle ready, and they have few transactions in flight. */
const withRoom = ({ inFlight, state }: Work, rows: ReadonlyArray<Unopened>): ReadonlyArray<Unopened> => {
  const ready = count(state.queue.ops.map(({ accountId }) => accountId))
  const sent = count(
    inFlight.signed(state.lane).flatMap(({ ops }) => [...new Set(ops.map(({ requestId }) => requestId))])
  )
  return rows.filter(
    ({ accountId, requestId }) =>
      (ready.get(accountId) ?? 0) < Queue.bundle && (sent.get(requestId) ?? 0) < mostInFlight
  )
}

/** The first request, with others opened together: as many elements as one preparation takes. */
const company = (first: Unopened, rows: ReadonlyArray<Unopened>): ReadonlyArray<Unopened> => {
  const together: Array<Unopened> = [first]
  let elements = first.unopened
  for (const row of rows) {
    if (elements >= Slices.size) break
    if (
      row === first ||
      row.contextDigest === null ||
      row.contextDigest !== first.contextDigest ||
      row.accountId !== first.accountId
    )
      continue
    together.push(row)
    elements += row.unopened
  }
  return together
}

/** Whether no work that a restored journal has lost can have done, or can do, the request's elements. */
const isClear = (state: State, context: Context, row: Unopened, now: number): boolean =>
  (isRemote(context) || (state.knownTo !== null && Reconcile.maySign(state.reconcile))) &&
  mayGiveUp(state, { context, op: row }, now)

const contextOf = ({ preparing, state }: Work, row: Unopened) =>
  Effect.matchEffect(preparing.contextOf(row, state.lane.chainId), {
    onFailure: ({ why }) => Effect.as(pause(state, [requestKey(row.requestId)], why), null),
    onSuccess: (context): Effect.Effect<Context | null> => Effect.succeed(context)
  })

/** Elements to open next; null: none now. Reads the journal only if elements may be due. `now`: by `MonotonicTime`. */
export const due = (work: Work, now: number) =>
  Effect.gen(function* () {
    const { requestJournal, state } = work
    if (state.opensAt === null || now < state.opensAt || Pauses.isPaused(state.pauses, whole, now))
      return null
    const rows = (yield* requestJournal.unopened(state.lane, page)).filter(
      // `Reprice` handles these.
      (row) => row.endpoint !== Reprice.endpoint
    )
    if (rows.length === 0) {
      const next = yield* requestJournal.nextDue(state.lane)
      const left = next === null ? null : next - (yield* Clock.currentTimeMillis)
      state.opensAt = left === null ? null : now + Math.min(Math.max(left, 1), longestMillis)
      state.pauses = Pauses.end(state.pauses, requestKeys(state))
      return null
    }
    const going = rows.filter((row) => !isPaused(state, row, now))
    const ready = withRoom(work, going)
    const [oldest] = ready
    if (oldest === undefined) {
      state.opensAt = (going.length > 0 ? null : Pauses.nextEnd(state.pauses, now)) ?? now + roomMillis
      return null
    }
    const context = yield* contextOf(work, oldest)
    if (context === null) return null
    // A request that waits for lost work delays no other.
    const clear = ready.filter((row) => isClear(state, context, row, now))
    const [first = oldest] = clear
    const own = first === oldest ? context : yield* contextOf(work, first)
    return own === null
      ? null
      : ({ context: own, requests: company(first, clear.length > 0 ? clear : [oldest]) } satisfies Due)
  })

/** Time of the worker's next turn without a wake-up. */
export const nextAt = ({ opensAt, pauses }: State, now: number): number | null => {
  const end = Pauses.nextEnd(pauses, now)
  if (opensAt === null || Pauses.isPaused(pauses, whole, now)) return end
  const next = Math.max(opensAt, now + roomMillis)
  return end === null ? next : Math.min(end, next)
}

/**
 * Makes ops of due elements under free nonce keys; an obstacle leaves them unopened. False: none are due, or unknown
 * transactions may have done them already.
 */
export const open = (work: Work, due: Due | null, now: number) =>
  Effect.gen(function* () {
    const { preparing, requestJournal, state } = work
    if (due === null) return false
    const { context, requests } = due
    const isOld = isRemote(context) && requests.some(({ acceptedAt }) => acceptedAt < state.claimed.at)
    const mustExamine = isOld && !isExamined(state, context)
    if (!mustExamine && !requests.every((row) => isClear(state, context, row, now))) {
      // Nonces not yet read are known soon.
      if (isRemote(context) || state.knownTo !== null) state.opensAt = now + lostMillis
      return false
    }
    const answer = yield* Effect.result(
      mustExamine ? Effect.as(examine(work, context), null) : preparing.open(context, requests)
    )
    if (Result.isFailure(answer)) {
      const names = requests.map(({ requestId }) => requestKey(requestId))
      yield* pause(state, names, answer.failure.why)
      return true
    }
    if (answer.success === null) return true
    const failures: Array<string> = []
    for (const [requestId, made] of answer.success) {
      const name = requestKey(requestId)
      if (Result.isFailure(made)) {
        yield* pause(state, [name], made.failure.why)
        continue
      }
      const { _tag } = yield* requestJournal.openElements(state.lane, made.success)
      // It was cancelled, or has ended.
      if (_tag === "accepted" || _tag === "over") state.pauses = Pauses.end(state.pauses, [name])
      else yield* pause(state, [name], `not opened: ${_tag}`)
      if (_tag !== "accepted") continue
      if (made.success.ops.length > 0) state.queue = { ...state.queue, hasMore: true }
      if (made.success.failed.length > 0) failures.push(requestId)
    }
    yield* work.affected(failures)
    return true
  })
