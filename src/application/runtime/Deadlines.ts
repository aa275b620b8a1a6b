import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as FiberRefs from "effect/FiberRefs"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as MonotonicTime from "./MonotonicTime.js"

/**
 * Deadlines that are nearly always called off. A fiber that sleeps until each of them costs more than what it watches;
 * here one fiber of a clock sleeps for all of them, by `MonotonicTime`.
 */

interface Deadline {
  readonly at: number
  readonly late: () => void
  readonly callOff: () => void
}

/** It sleeps no longer at a time, milliseconds: when all are called off, it keeps no program from its end for longer. */
const napMillis = 100

class Deadlines {
  /** By how long they were set for: those of one length fall due in the order in which they were set. */
  private readonly byMillis = new Map<number, Set<Deadline>>()
  private sleeper: { readonly until: number; readonly fiber: Fiber.Fiber<void> | null } | null = null

  constructor(private readonly clock: Clock.Clock) {}

  set(fiberRefs: FiberRefs.FiberRefs, millis: number, late: () => void): () => void {
    const sameLength = this.byMillis.get(millis) ?? new Set()
    if (sameLength.size === 0) this.byMillis.set(millis, sameLength)
    const callOff = () => {
      if (sameLength.delete(deadline) && sameLength.size === 0) this.byMillis.delete(millis)
    }
    const deadline = { at: MonotonicTime.unsafeMillis(this.clock) + millis, late, callOff }
    sameLength.add(deadline)
    if (this.sleeper === null || this.sleeper.until > deadline.at) this.wake(fiberRefs)
    return callOff
  }

  private earliest(): Deadline | null {
    let earliest: Deadline | null = null
    for (const [deadline] of this.byMillis.values())
      if (deadline !== undefined && (earliest === null || deadline.at < earliest.at)) earliest = deadline
    return earliest
  }

  /** Tells those that are due, and sleeps until the next one is. */
  private wake(fiberRefs: FiberRefs.FiberRefs): void {
    this.sleeper?.fiber.interruptUnsafe(undefined)
    // What is set or called off by those that are told is seen here.
    this.sleeper = { until: Number.NEGATIVE_INFINITY, fiber: null }
    const now = MonotonicTime.unsafeMillis(this.clock)
    let next = this.earliest()
    for (; next !== null && next.at <= now; next = this.earliest()) {
      next.callOff()
      next.late()
    }
    this.sleeper = null
    if (next === null) return
    const until = Math.min(next.at, now + napMillis)
    const fork = Effect.runForkWith(Context.empty())
    const fiber = fork(this.clock.sleep(Duration.millis(Math.ceil(until - now))))
    this.sleeper = { until, fiber }
    fiber.addObserver(() => {
      if (this.sleeper?.fiber !== fiber) return
      this.sleeper = null
      this.wake(fiberRefs)
    })
  }
}

const ofClocks = new WeakMap<Clock.Clock, Deadlines>()

/** Calls `late` after so many milliseconds; what it returns calls that off. `fiber` is the one that asks for it. */
export const set = (fiber: Fiber.Fiber<unknown, unknown>, millis: number, late: () => void): (() => void) => {
  const clock = Context.get(fiber.getRef(DefaultServices.currentServices), Clock.Clock)
  const known = ofClocks.get(clock) ?? new Deadlines(clock)
  ofClocks.set(clock, known)
  return known.set(fiber.getFiberRefs(), millis, late)
}
