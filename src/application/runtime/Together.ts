import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as FiberStatus from "effect/FiberStatus"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as Deadlines from "./Deadlines.js"

/**
 * What `Effect.all` and `Effect.timeoutFail` do with fibers, for the few at a time of a request: a fiber begins on the
 * spot with what its parent has, and what ends there at once costs no turn of a scheduler. Changes that a child makes to
 * fiber refs are its own.
 */

type Parent = Fiber.Fiber<unknown, unknown>

const start = <A, E, R>(
  parent: Parent,
  runtimeFlags: RuntimeFlags.RuntimeFlags,
  effect: Effect.Effect<A, E, R>
): Fiber.Fiber<A, E> =>
  Effect.runForkWith(
    parent.context
    // The context is the parent's, which has all of R.
  )(effect as Effect.Effect<A, E>)

/** Work of several, which ends with none of them: on a fiber of its own, with what this one has. */
export const beside = <A, E>(fiber: Parent, effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> =>
  start(fiber, Runtime.defaultRuntimeFlags, effect)

/** All of them at once. The first failure interrupts the others, and is told when they have ended. */
const allOf = <A, E, R>(
  effects: ReadonlyArray<Effect.Effect<A, E, R>>
): Effect.Effect<ReadonlyArray<A>, E, R> =>
  Effect.withFiber<ReadonlyArray<A>, E, R>((parent, { runtimeFlags }: FiberStatus.Running) =>
    Effect.callback((resume) => {
      const results = new Array<A>(effects.length)
      const fibers: Array<Fiber.Fiber<A, E>> = []
      let open = effects.length
      let failure: Exit.Exit<never, E> | null = null
      const stop = (): void => {
        for (const fiber of fibers) fiber.interruptUnsafe(undefined)
      }
      let over: () => void = () => resume(failure ?? Effect.succeed(results))
      for (const [place, effect] of effects.entries()) {
        if (failure !== null) {
          // Nobody wants what has not begun.
          open -= effects.length - place
          stop()
          break
        }
        const end = (exit: Exit.Exit<A, E>): void => {
          open -= 1
          if (Exit.isSuccess(exit)) results[place] = exit.value
          else if (failure === null) {
            failure = Exit.failCause(exit.cause)
            stop()
          }
          if (open === 0) over()
        }
        // What is known already needs no fiber.
        if (Exit.isExit(effect)) {
          end(effect as Exit.Exit<A, E>)
          continue
        }
        const fiber = start(parent, runtimeFlags, effect)
        fibers.push(fiber)
        fiber.addObserver(end)
      }
      // What is over already needs nobody who could call it off.
      if (open === 0) {
        over()
        return
      }
      return Effect.callback<void>((ended) => {
        over = () => ended(Effect.void)
        if (open === 0) over()
        stop()
      })
    })
  )

/** The tuple or list of what all of them give. */
export const all = <const Effects extends ReadonlyArray<Effect.Effect<unknown, unknown, unknown>>>(
  effects: Effects
): Effect.Effect<
  { -readonly [Place in keyof Effects]: Effect.Success<Effects[Place]> },
  Effect.Error<Effects[number]>,
  Effect.Services<Effects[number]>
> =>
  allOf(effects) as Effect.Effect<
    { -readonly [Place in keyof Effects]: Effect.Success<Effects[Place]> },
    Effect.Error<Effects[number]>,
    Effect.Services<Effects[number]>
  >

/** The same for each; of one alone the fiber itself does it. */
export const forEach = <A, B, E, R>(
  items: Iterable<A>,
  one: (item: A, index: number) => Effect.Effect<B, E, R>
): Effect.Effect<ReadonlyArray<B>, E, R> =>
  Effect.suspend(() => {
    const list = [...items]
    const [first] = list
    if (list.length === 0) return Effect.succeed([])
    if (list.length === 1) return Effect.map(one(first as A, 0), (only) => [only])
    return allOf(list.map(one))
  })

/**
 * Waits for the effect no longer than that, and neither for its end when it is late or not wanted any more: it is
 * interrupted, and left alone. Whether the wait may be interrupted is its parent's affair.
 */
export const atMost = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  late: () => Effect.Effect<A, E2>
): Effect.Effect<A, E | E2, R> =>
  Effect.withFiber<A, E | E2, R>((parent, { runtimeFlags }) =>
    Effect.callback((resume) => {
      const flags = RuntimeFlags.enable(runtimeFlags, RuntimeFlags.Interruption)
      const fiber = start(parent, flags, effect)
      const exit = fiber.pollUnsafe()
      if (exit !== null) {
        resume(exit)
        return
      }
      const interrupt = () => fiber.interruptUnsafe(undefined)
      const callOff = Deadlines.set(parent, millis, () => {
        resume(Effect.suspend(late))
        interrupt()
      })
      fiber.addObserver((end) => {
        callOff()
        resume(end)
      })
      return Effect.sync(() => {
        callOff()
        interrupt()
      })
    })
  )

/** The same wait, which may be interrupted also where its parent may not be. */
export const within = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  late: () => Effect.Effect<A, E2>
): Effect.Effect<A, E | E2, R> => Effect.interruptible(atMost(effect, millis, late))
