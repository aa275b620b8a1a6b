import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"

export interface Limits {
  /** Requests in flight. */
  readonly requests: number
  /** Event streams of all accounts, and of one account. */
  readonly streams: number
  readonly streamsOfAccount: number
}

/** A slot of a request in flight. */
export interface Ticket {
  /** The fiber to interrupt after the drain time. */
  fiber: Fiber.Fiber<unknown, unknown>
}

/** Longest life of a stream: proxies and load balancers end older ones anyway. */
const longestStream = "1 hour"

/**
 * Bounds the requests in flight and drains them when the service stops. Streams have separate limits and end as soon as the
 * service stops.
 */
export class InFlightLimit {
  private readonly inside = new Set<Ticket>()
  private readonly empty = Latch.makeUnsafe(true)
  private readonly closing = Latch.makeUnsafe()
  private readonly streams = new Map<string, number>()
  private allStreams = 0
  stopping = false

  constructor(
    readonly most: Limits,
    /** Asks the running handlers to answer with their current state. */
    private readonly lastCall: Effect.Effect<void>
  ) {}

  get size(): number {
    return this.inside.size
  }

  /** Admits the request of this fiber, or returns the reason for a refusal. */
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

  admitsStream(accountId: string): boolean {
    return (
      this.allStreams < this.most.streams && (this.streams.get(accountId) ?? 0) < this.most.streamsOfAccount
    )
  }

  /** Counts the stream while it runs. It ends with the service, and immediately when the limit is now reached. */
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

  /** Refuses new requests and waits for the others. After `drain` it makes the last call, then interrupts the rest. */
  stop(drain: Duration.Input): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.stopping = true
      this.closing.openUnsafe()
      // Finalizers run uninterruptibly, where the time-out would hang.
      const left = Effect.interruptible(this.empty.await)
      yield* Effect.timeoutOption(left, drain)
      if (this.inside.size > 0) {
        yield* this.lastCall
        yield* Effect.timeoutOption(left, "1 second")
      }
      for (const { fiber } of this.inside) fiber.interruptUnsafe()
      // A fiber that ignores interruption must not keep the process.
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
