import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"

export interface Limits {
  /** Requests under way. */
  readonly requests: number
  /** Streams of events, of all accounts and of one. */
  readonly streams: number
  readonly streamsOfAccount: number
}

/** A place among the requests under way. */
export interface Ticket {
  /** What to interrupt when the drain time is over. */
  fiber: Fiber.Fiber<unknown, unknown>
}

/** How long a stream lasts at most: proxies and load balancers end older ones anyway. */
const longestStream = "1 hour"

/**
 * Bounds the requests under way, and lets them out when the service stops. Answers that go on for long are counted for
 * themselves, and end at once then.
 */
export class InFlightLimit {
  private readonly inside = new Set<Ticket>()
  private readonly empty = Latch.makeUnsafe(true)
  private readonly closing = Latch.makeUnsafe()
  private readonly streams = new Map<string, number>()
  private allStreams = 0
  /** True once `stop` has begun. */
  stopping = false

  constructor(
    readonly most: Limits,
    /** Asks the handlers under way to answer with what they know. */
    private readonly lastCall: Effect.Effect<void>
  ) {}

  /** The requests under way. */
  get size(): number {
    return this.inside.size
  }

  /** Lets the request in that runs in this fiber, or says why not. */
  enter(fiber: Fiber.Fiber<unknown, unknown>): Ticket | "shutting_down" | "overloaded" {
    if (this.stopping) return "shutting_down"
    if (this.inside.size >= this.most.requests) return "overloaded"
    const ticket = { fiber }
    this.inside.add(ticket)
    this.empty.closeUnsafe()
    return ticket
  }

  leave(ticket: Ticket): void {
    this.inside.delete(ticket)
    if (this.inside.size === 0) this.empty.openUnsafe()
  }

  /** Whether one more stream may begin. */
  admitsStream(accountId: string): boolean {
    return (
      this.allStreams < this.most.streams && (this.streams.get(accountId) ?? 0) < this.most.streamsOfAccount
    )
  }

  /** The stream, counted while it runs. It ends with the service, and at once when there are too many by now. */
  boundedStream<A>(accountId: string, stream: Stream.Stream<A>): Stream.Stream<A> {
    return Stream.suspend(() => {
      if (!this.admitsStream(accountId)) return Stream.empty
      this.countStream(accountId, 1)
      return stream.pipe(
        Stream.interruptWhen(Effect.race(Effect.sleep(longestStream), this.closing.await)),
        Stream.ensuring(Effect.sync(() => this.countStream(accountId, -1)))
      )
    })
  }

  /** Refuses new requests and waits for those under way. After `drain` it gives the last call, then interrupts the rest. */
  stop(drain: Duration.Input): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.stopping = true
      this.closing.openUnsafe()
      // Interruptible by itself: as a finalizer of a scope this runs where nothing is, and a time-out would hang.
      const left = Effect.interruptible(this.empty.await)
      yield* Effect.timeoutOption(left, drain)
      if (this.inside.size > 0) {
        yield* this.lastCall
        yield* Effect.timeoutOption(left, "1 second")
      }
      for (const { fiber } of this.inside) fiber.interruptUnsafe()
      // What does not heed an interruption must not keep the process.
      yield* Effect.timeoutOption(left, "1 second")
    })
  }

  private countStream(accountId: string, by: number): void {
    const now = (this.streams.get(accountId) ?? 0) + by
    if (now === 0) this.streams.delete(accountId)
    else this.streams.set(accountId, now)
    this.allStreams += by
  }
}
