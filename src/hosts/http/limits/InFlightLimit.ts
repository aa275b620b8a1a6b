import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type { Ticket } from "../message/Exchange.js"

/** Bounds the requests under way, and lets them out when the service stops. */
export class InFlightLimit {
  private readonly inside = new Set<Ticket>()
  private readonly empty = Latch.makeUnsafe(true)
  private closed = false

  constructor(
    private readonly most: number,
    /** Asks the handlers under way to answer with what they know. */
    private readonly lastCall: Effect.Effect<void>
  ) {}

  /** True once `stop` has begun. */
  get stopping(): boolean {
    return this.closed
  }

  /** The requests under way. */
  get size(): number {
    return this.inside.size
  }

  /** Lets the request in that runs in this fiber, or says why not. */
  enter(fiber: Fiber.Fiber<unknown, unknown>): Ticket | "shutting_down" | "overloaded" {
    if (this.closed) return "shutting_down"
    if (this.inside.size >= this.most) return "overloaded"
    const ticket = { fiber }
    this.inside.add(ticket)
    this.empty.closeUnsafe()
    return ticket
  }

  leave(ticket: Ticket): void {
    this.inside.delete(ticket)
    if (this.inside.size === 0) this.empty.openUnsafe()
  }

  /** Refuses new requests and waits for those under way. After `drain` it gives the last call, then interrupts the rest. */
  stop(drain: Duration.Input): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.closed = true
      // Interruptible by itself: as a finalizer of a scope this runs where nothing is, and a time-out would hang.
      const left = Effect.interruptible(this.empty.await)
      yield* Effect.timeoutOption(left, drain)
      if (this.inside.size > 0) {
        yield* this.lastCall
        yield* Effect.timeoutOption(left, "1 second")
      }
      yield* Effect.forEach([...this.inside], ({ fiber }) => Effect.sync(() => fiber.interruptUnsafe()), {
        discard: true
      })
      // What does not heed an interruption must not keep the process.
      yield* Effect.timeoutOption(left, "1 second")
    })
  }
}
