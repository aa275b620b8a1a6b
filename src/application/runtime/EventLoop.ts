import * as Effect from "effect/Effect"
import type * as Scheduler from "effect/Scheduler"

/**
 * The event loop has one thread for all requests: whoever computes for long keeps timers, sockets and everybody else
 * waiting. `Effect.yieldNow()` does not help against that, since the default scheduler goes on in microtasks, which
 * come before all I/O.
 *
 * - `scheduler` runs fibers for a slice of time, then lets the event loop turn. The HTTP front and the service install
 *   it; who runs use cases on a runtime of their own installs it with `Effect.withScheduler` or `Layer.setScheduler`.
 * - A single step of a fiber cannot be interrupted by any scheduler. Loops over amounts of work that a caller or a node
 *   chooses go through `map`, `each` or `drive`, which let the event loop turn whatever scheduler is installed.
 */

/** How long fibers run before the event loop turns. One step more may follow: steps are held to half of this. */
export const sliceMillis = 5

/** When the present turn of the event loop began to work for us; null: it has not. */
let began: number | null = null

const afterTurn = (task: () => void): void => {
  // Browsers have no setImmediate; a timer is slower there, and as fair.
  if (typeof globalThis.setImmediate === "function") globalThis.setImmediate(task)
  else globalThis.setTimeout(task, 0)
}

const isSpent = (): boolean => {
  const now = performance.now()
  if (began !== null) return now - began > sliceMillis
  began = now
  afterTurn(() => {
    began = null
  })
  return false
}

/** How many steps of a fiber are taken before the time is looked at. */
const stepsBetween = 16

interface Ready {
  readonly task: Scheduler.Task
  readonly priority: number
}

class TimeSlicing implements Scheduler.Scheduler {
  /** In order: by priority, then as they came. */
  private tasks: Array<Ready> = []
  private running = false
  private readonly now = () => this.run()

  shouldYield(fiber: Parameters<Scheduler.Scheduler["shouldYield"]>[0]): number | false {
    return fiber.currentOpCount % stepsBetween === 0 && isSpent() ? 0 : false
  }

  scheduleTask(task: Scheduler.Task, priority: number): void {
    this.add({ task, priority })
    if (this.running) return
    this.running = true
    this.goOn()
  }

  private add(ready: Ready): void {
    let at = this.tasks.length
    while (at > 0 && (this.tasks[at - 1]?.priority ?? 0) > ready.priority) at--
    if (at === this.tasks.length) this.tasks.push(ready)
    else this.tasks.splice(at, 0, ready)
  }

  private goOn(): void {
    if (isSpent()) afterTurn(this.now)
    else queueMicrotask(this.now)
  }

  /** Takes what is ready now; what becomes ready meanwhile comes after it. */
  private run(): void {
    const ready = this.tasks
    this.tasks = []
    for (let at = 0; at < ready.length; at++) {
      ready[at]?.task()
      if (at === ready.length - 1 || !isSpent()) continue
      const later = this.tasks
      this.tasks = ready.slice(at + 1)
      for (const each of later) this.add(each)
      break
    }
    if (this.tasks.length > 0) this.goOn()
    else this.running = false
  }
}

/** Lets the event loop turn as soon as fibers have had their slice of time. One for the process, as the loop is. */
export const scheduler: Scheduler.Scheduler = new TimeSlicing()

const turn = Effect.callback<void>((resume) => afterTurn(() => resume(Effect.void)))

/** Lets the event loop turn if the slice of time is spent. */
export const breathe: Effect.Effect<void> = Effect.suspend(() => (isSpent() ? turn : Effect.void))

/** Runs to the end what stops now and then, and lets the event loop turn where it stops. */
export const drive = <A>(steps: () => Generator<void, A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const running = steps()
    const goOn: Effect.Effect<A> = Effect.suspend(() => {
      for (;;) {
        const next = running.next()
        if (next.done === true) return Effect.succeed(next.value)
        if (isSpent()) return Effect.andThen(turn, goOn)
      }
    })
    return goOn
  })

/** `items.map(one)`, in slices. */
export const map = <A, B>(
  items: ReadonlyArray<A>,
  one: (item: A, index: number) => B
): Effect.Effect<ReadonlyArray<B>> =>
  drive(function* () {
    const results: Array<B> = []
    for (const [index, item] of items.entries()) {
      results.push(one(item, index))
      yield
    }
    return results
  })

/** One after the other, with turns of the event loop in between. */
export const each = <A, B, E, R>(
  items: ReadonlyArray<A>,
  one: (item: A, index: number) => Effect.Effect<B, E, R>
): Effect.Effect<ReadonlyArray<B>, E, R> =>
  items.length === 1
    ? Effect.suspend(() => Effect.map(one(items[0] as A, 0), (only) => [only]))
    : Effect.forEach(items, (item, index) => Effect.andThen(breathe, one(item, index)))
