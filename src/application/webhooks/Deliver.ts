import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as StandardWebhook from "../../domain/crypto/StandardWebhook.js"
import { WakeUps } from "../answers/WakeUps.js"
import * as Metrics from "../observe/Metrics.js"
import { ClockTrust, type Trust } from "../ports/clock/ClockTrust.js"
import { Replicas } from "../ports/Replicas.js"
import { type Delivery, type Target, WebhookSender, Webhooks, type WebhooksError } from "../ports/Webhooks.js"
import * as Backoff from "./Backoff.js"

/**
 * Sends the stored events of requests and watches to the accounts' webhooks, until the endpoint accepts each or its
 * retries are over.
 *
 * Gotchas: an endpoint may get an event twice, when its acceptance is not stored before a crash. The message's id stays
 * the same.
 */

/** Poll interval for due events that were not announced, and the least time between two polls, milliseconds. */
const pollMillis = 1_000
const deliveryIntervalMillis = 25
/** Events per round of one endpoint, of different requests, and the number sent concurrently. */
const round = 16
const atOnce = 8
/**
 * Duration of a claim on an endpoint, and the remaining time that an attempt needs. It exceeds the sender's wait for an
 * answer plus the store's for a statement, so that no other process begins the same attempt meanwhile.
 */
export const claimMillis = 30_000
export const attemptMillis = 25_500
/** Retry interval for storing an attempt's result while the endpoint is claimed, after the store has failed. */
const noteAgainMillis = 1_000
/**
 * Pause of an endpoint that accepted no event of a round, even for other due events. It grows with each such round, and
 * with the pause that the endpoint requests.
 */
const firstRestMillis = 5_000
const longestRestMillis = 30_000

/** An endpoint with this status takes no more events. */
const gone = 410

interface Parts {
  readonly store: Webhooks["Service"]
  readonly sender: WebhookSender["Service"]
  readonly process: string
  readonly trust: Trust
  /** Consecutive rounds without an accepted event, by endpoint, in this process only. */
  readonly idle: Map<string, number>
}

/** Pause of an endpoint after a round without an accepted event; counts that round. */
const restOf = ({ idle }: Parts, webhookId: string): number => {
  const rounds = idle.get(webhookId) ?? 0
  idle.set(webhookId, rounds + 1)
  return Math.min(longestRestMillis, firstRestMillis * 2 ** Math.min(rounds, 10))
}

/**
 * Sends in a separate fiber, which a time-out can end. A fiber that starts uninterruptible would wait for an answer
 * that never ends.
 */
const send = (
  { sender }: Parts,
  { accountId, url }: Target,
  headers: Readonly<Record<string, string>>,
  body: string
) =>
  Effect.flatMap(
    Effect.forkDetach(Effect.interruptible(Effect.result(sender.send(accountId, url, headers, body)))),
    Fiber.join
  )

/** The subject of an event, and its fields in addition to the event's data. */
const subjectOf = (delivery: Delivery) => {
  const { event } = delivery
  const { sequence } = event
  const chainId = Number(delivery.chainId)
  if ("watchId" in delivery) {
    const { watchId } = delivery
    return { type: `watch.${event.kind}`, id: watchId, about: { watchId, sequence, chainId } }
  }
  const { endpoint, metadata, requestId } = delivery
  return {
    type: `request.${event.kind}`,
    id: requestId,
    about: { requestId, sequence, endpoint, chainId, metadata }
  }
}

/** The message to an endpoint: identical bytes in every attempt, except for the attempt's time. */
const messageOf = (delivery: Delivery, now: number): StandardWebhook.Message => {
  const { event } = delivery
  const { about, id, type } = subjectOf(delivery)
  return {
    // Constant over all attempts: receivers detect repeats by it.
    id: `${id}_${event.sequence}`,
    timestamp: Math.floor(now / 1_000),
    body: JSON.stringify({
      type,
      timestamp: DateTime.formatIso(DateTime.makeUnsafe(event.at)),
      data: { ...about, ...event.data }
    })
  }
}

/** An endpoint while this process has claimed it. */
class Claim {
  private until = 0
  private untouchedUntil = 0
  private readonly turn = Semaphore.makeUnsafe(1)

  constructor(
    private readonly parts: Parts,
    readonly webhookId: string
  ) {}

  /** Whether the claim lasts for an attempt; renews it if it does not. */
  get hold(): Effect.Effect<boolean, WebhooksError> {
    return this.turn.withPermits(1)(
      Effect.gen({ self: this }, function* () {
        const now = yield* Clock.currentTimeMillis
        if (this.until - now >= attemptMillis) return true
        const { process, store } = this.parts
        if (!(yield* store.claim(this.webhookId, process, now + claimMillis))) return false
        this.until = now + claimMillis
        return true
      })
    )
  }

  /** Time until which the endpoint has requested no events. */
  get asksUntil(): number {
    return this.untouchedUntil
  }

  /** Stores the endpoint's requested pause. */
  asks(until: number): void {
    this.untouchedUntil = Math.max(this.untouchedUntil, until)
  }

  /** Stores an attempt's result; retries, interruptibly, while no other process can begin the attempt. */
  note(noting: Effect.Effect<void, WebhooksError>): Effect.Effect<void, WebhooksError> {
    return Effect.catch(noting, (error) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        now + noteAgainMillis >= this.until
          ? Effect.fail(error)
          : Effect.andThen(Effect.interruptible(Effect.sleep(noteAgainMillis)), this.note(noting))
      )
    )
  }
}

/**
 * Sends one event and stores the result; uninterruptible in between. Sends nothing if another process has the endpoint
 * or it is paused (`lost`), or if it has requested a pause (`untouched`).
 */
const deliver = Effect.fnUntraced(function* (parts: Parts, claim: Claim, target: Target, delivery: Delivery) {
  if (!(yield* claim.hold)) return "lost"
  const { store, trust } = parts
  const began = yield* Clock.currentTimeMillis
  if (claim.asksUntil > began) return "untouched"
  const { event } = delivery
  const message = messageOf(delivery, began)
  const headers = StandardWebhook.headers(target.secrets.map(Redacted.value), message)
  const sent = yield* send(parts, target, headers, message.body)
  const { status, ...answered } = Result.getOrElse(sent, () => ({ status: 0, retryAfterMillis: 0 }))
  const ref = {
    ...("watchId" in delivery ? { watchId: delivery.watchId } : { requestId: delivery.requestId }),
    webhookId: target.webhookId,
    sequence: event.sequence
  }
  const isTaken = status >= 200 && status < 300
  if (isTaken) {
    yield* claim.note(store.delivered(ref))
    yield* Metrics.count(Metrics.webhookDeliveries, { outcome: "delivered" })
    return "taken"
  }
  const now = yield* Clock.currentTimeMillis
  const asked = Backoff.requestedMillis({ status, ...answered })
  const next = Backoff.next(delivery, now, asked)
  // A doubted clock abandons no event: the three days may not be over.
  const retryAt = next !== null || (yield* trust.mayExpire) ? next : now + longestRestMillis
  if (asked > 0 && retryAt !== null) claim.asks(Math.min(now + asked, retryAt))
  const reason = Result.match(sent, {
    onFailure: ({ message }) => message,
    onSuccess: ({ status }) => `it answered ${status}`
  })
  yield* claim.note(store.failed(ref, reason, retryAt))
  yield* Metrics.count(Metrics.webhookDeliveries, { outcome: retryAt === null ? "dead" : "failed" })
  if (status !== gone && retryAt !== null) return "refused"
  yield* store.setState(target.webhookId, "failing", "service")
  yield* Effect.annotateLogs(Effect.logWarning("webhook paused; run castellan webhooks resume"), {
    webhookId: target.webhookId,
    accountId: target.accountId,
    reason
  })
  return "refused"
}, Effect.uninterruptible)

/** Delivers an endpoint's due events, as long as it accepts some of them. */
const serve = Effect.fnUntraced(function* (
  parts: Parts,
  claim: Claim
): Effect.fn.Return<void, WebhooksError> {
  const { process, store } = parts
  const { webhookId } = claim
  if (!(yield* claim.hold)) return
  const next = yield* store.next(webhookId, round)
  if (next === null) parts.idle.delete(webhookId)
  if (next === null || next.deliveries.length === 0) return yield* store.release(webhookId, process)
  const outcomes = yield* Effect.forEach(
    next.deliveries,
    (delivery) => deliver(parts, claim, next.target, delivery),
    { concurrency: atOnce }
  )
  if (outcomes.includes("lost")) return
  const now = yield* Clock.currentTimeMillis
  const isAsked = claim.asksUntil > now
  const isTaking = outcomes.includes("taken")
  if (isTaking) parts.idle.delete(webhookId)
  if (isTaking && !isAsked) return yield* serve(parts, claim)
  yield* store.rest(
    webhookId,
    isTaking ? claim.asksUntil : Math.max(claim.asksUntil, now + restOf(parts, webhookId))
  )
  yield* store.release(webhookId, process)
})

const measure = Effect.fnUntraced(function* ({ store }: Parts) {
  const oldest = yield* store.oldest
  const now = yield* Clock.currentTimeMillis
  yield* Metric.update(Metrics.webhookOldestSeconds, oldest === null ? 0 : Math.max(0, now - oldest) / 1_000)
})

/**
 * Delivers events to webhooks until the scope closes, each endpoint in a separate fiber, so that a slow endpoint delays
 * no other. Attempts in progress are completed and stored before the scope is closed.
 */
export const start: Effect.Effect<void, never, Webhooks | WebhookSender | Replicas | WakeUps | Scope.Scope> =
  Effect.gen(function* () {
    const { process } = yield* Replicas
    const { changed, notifyEvents } = yield* WakeUps
    const parts: Parts = {
      store: yield* Webhooks,
      sender: yield* WebhookSender,
      process,
      trust: yield* ClockTrust,
      idle: new Map()
    }
    const served = new Set<string>()
    /** Endpoints with more due events since their serving began. */
    const missed = new Set<string>()
    const scope = yield* Effect.scope
    const failed = (cause: unknown) => Effect.logDebug("webhooks' undelivered events unavailable", cause)
    const deliverDue = Effect.gen(function* () {
      for (const webhookId of yield* parts.store.due(process)) {
        if (served.has(webhookId)) {
          missed.add(webhookId)
          continue
        }
        served.add(webhookId)
        missed.delete(webhookId)
        const own = serve(parts, new Claim(parts, webhookId)).pipe(
          // A process that stops releases its endpoints immediately.
          Effect.onInterrupt(() => Effect.ignore(parts.store.release(webhookId, process))),
          Effect.catchCause(failed),
          Effect.ensuring(
            Effect.suspend(() => {
              served.delete(webhookId)
              return missed.has(webhookId) ? notifyEvents : Effect.void
            })
          )
        )
        yield* Effect.forkIn(Effect.interruptible(own), scope)
      }
    })
    const next = Effect.andThen(
      Effect.sleep(deliveryIntervalMillis),
      Effect.raceFirst(changed, Effect.sleep(pollMillis - deliveryIntervalMillis))
    )
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.catchCause(deliverDue, failed), next)))
    yield* Effect.forkScoped(
      Effect.forever(Effect.andThen(Effect.catchCause(measure(parts), failed), Effect.sleep(pollMillis)))
    )
  })
