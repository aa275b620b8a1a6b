import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as EventLoop from "../runtime/EventLoop.js"
import * as Group from "./Group.js"

/** Requests wait here for other requests, for their run, or for an op of their lane to end. */

export interface Member extends Group.Member {
  readonly lane: string
}

export interface Room<M> {
  /** Groups the member with others for a run. */
  readonly enter: (member: M) => void
  /** Lets the member enter again when an op of its lane ends, at the latest after `retryMillis`. */
  readonly wait: (member: M) => void
  readonly released: (lane: string) => void
  readonly drain: () => ReadonlyArray<M>
}

/** Longest wait for `released`, milliseconds: the call may never come. */
const retryMillis = 1_000

export const make = <M extends Member, E>(options: {
  readonly fork: (effect: Effect.Effect<void, E>) => {
    readonly addObserver: (observer: (exit: Exit.Exit<void, E>) => void) => void
  }
  readonly run: (members: ReadonlyArray<M>) => Effect.Effect<void, E>
  /** The member's run failed. Members that entered again, or wait again, are no longer part of the run. */
  readonly fail: (member: M, exit: Exit.Exit<never, E>) => void
}): Room<M> => {
  const { fail, fork, run } = options
  const groups = Group.make<M>()
  const waiting = new Map<string, Set<M>>()
  const running = new Set<M>()
  let isTurning = false

  const begin = (): void => {
    for (let members = groups.next(); members !== null; members = groups.next()) {
      const some = members
      for (const member of some) running.add(member)
      fork(run(some)).addObserver((exit) => {
        for (const member of some)
          if (running.delete(member) && Exit.isFailure(exit)) fail(member, Exit.failCause(exit.cause))
        groups.end(some[0]?.group ?? "")
        begin()
      })
    }
  }

  const turn = (): void => {
    if (isTurning) return
    isTurning = true
    EventLoop.afterTurn(() => {
      isTurning = false
      const isWaiting = groups.turn()
      begin()
      if (isWaiting) turn()
    })
  }

  const enter = (member: M): void => {
    running.delete(member)
    groups.arrive(member)
    turn()
  }

  const released = (lane: string): void => {
    const some = waiting.get(lane)
    waiting.delete(lane)
    for (const member of some ?? []) enter(member)
  }

  return {
    enter,
    released,
    wait: (member) => {
      const { lane } = member
      running.delete(member)
      const some = waiting.get(lane) ?? new Set()
      waiting.set(lane, some)
      some.add(member)
      if (some.size > 1) return
      // The first waiting member sets one timer for its whole lane.
      fork(
        Effect.andThen(
          Effect.sleep(retryMillis),
          Effect.sync(() => {
            if (waiting.get(lane) === some) released(lane)
          })
        )
      )
    },
    drain: () => {
      const all = [...groups.drain(), ...[...waiting.values()].flatMap((some) => [...some])]
      waiting.clear()
      return all
    }
  }
}
