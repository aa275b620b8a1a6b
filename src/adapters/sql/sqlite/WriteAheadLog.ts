import { closeSync, fdatasync, openSync, realpathSync } from "node:fs"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { SqlError, UnknownError } from "effect/sql/SqlError"

/**
 * Whether what was committed is on the disk. Those who wait share a write. Once a write has failed, all fail for ever: what
 * of the log the disk has is not known from then on, and another try that succeeds would not say either.
 */
export interface Durability {
  /**
   * Something was committed: it is in the log, and on the disk after the next write of the log. `isDemanded`: somebody is
   * about to wait for that, and who sees it is not answered before.
   */
  readonly committed: (isDemanded: boolean) => void
  /** Waits until everything that was committed before is on the disk. */
  readonly durable: Effect.Effect<void, SqlError>
  /** Waits until everything is on the disk for which `durable` was asked before: what is seen of it may be told. */
  readonly told: Effect.Effect<void, SqlError>
}

/** Writes the log to the disk, away from the event loop, and calls back. */
export type Sync = (done: (error: Error | null) => void) => void

/** How writes of a busy process wait for others to share them. */
export interface Crowd {
  /** The longest that one waits, milliseconds. */
  readonly most: number
  /** Runs it after a while. */
  readonly later: (look: () => void) => void
  /** Milliseconds; `idle`: that the event loop has had nothing to do, of those. */
  readonly clock: () => { readonly now: number; readonly idle: number }
}

/** So many wait for no more. */
const enough = 16

/** The first wait once a write was shared, milliseconds. */
const firstWait = 4

/** So much idleness of the event loop between two looks: nobody else is about to come, milliseconds. */
const idleMillis = 1

/**
 * A write that somebody is alone with begins at once. Once some have shared one, the next waits for others, twice as long
 * each time and half as long after one that nobody shared: as long as the event loop is busy, since then the wait costs
 * nobody anything, and the process as many writes less.
 */
export const durability = (sync: Sync, crowd: Crowd | null = null): Durability => {
  let committed = 0
  let demanded = 0
  let written = 0
  let writing = false
  let wait = 0
  let failure: SqlError | null = null
  let waiting: ReadonlyArray<{ readonly upTo: number; readonly resume: () => void }> = []

  const write = (): void => {
    // What is committed from here on may or may not be in this write.
    const upTo = committed
    sync((error) => {
      writing = false
      if (error === null) written = upTo
      else
        failure = new SqlError({
          reason: new UnknownError({
            cause: error,
            message: "the write-ahead log cannot be written to the disk"
          })
        })
      const over = waiting.filter((each) => failure !== null || each.upTo <= written)
      waiting = waiting.filter((each) => !over.includes(each))
      if (crowd !== null)
        wait =
          over.length > 1
            ? Math.min(crowd.most, Math.max(firstWait, 2 * wait))
            : wait > firstWait
              ? wait / 2
              : 0
      for (const { resume } of over) resume()
      if (waiting.length > 0) begin()
    })
  }

  const begin = (): void => {
    if (writing) return
    writing = true
    if (crowd === null || wait === 0) {
      write()
      return
    }
    const until = crowd.clock().now + wait
    const look = (idleBefore: number): void =>
      crowd.later(() => {
        const { idle, now } = crowd.clock()
        if (now >= until || waiting.length >= enough || idle - idleBefore >= idleMillis) write()
        else look(idle)
      })
    look(crowd.clock().idle)
  }

  const outcome = Effect.suspend(() => (failure === null ? Effect.void : Effect.fail(failure)))

  const upTo = (number: () => number): Effect.Effect<void, SqlError> =>
    Effect.suspend(() => {
      const wanted = number()
      return failure !== null || written >= wanted
        ? outcome
        : Effect.callback<void, SqlError>((resume) => {
            waiting = [...waiting, { upTo: wanted, resume: () => resume(outcome) }]
            begin()
          })
    })

  return {
    committed: (isDemanded) => {
      committed += 1
      if (isDemanded) demanded = committed
    },
    durable: upTo(() => {
      demanded = committed
      return demanded
    }),
    told: upTo(() => demanded)
  }
}

/** In memory there is no disk. */
export const inMemory: Durability = { committed: () => undefined, durable: Effect.void, told: Effect.void }

const eventLoop: Crowd = {
  most: 50,
  later: (look) => void setTimeout(look, 2),
  clock: () => ({ now: performance.now(), idle: performance.eventLoopUtilization().idle })
}

/**
 * The durability of a database file that has a write-ahead log and is open: with `synchronous = normal` SQLite writes a
 * commit to the log and leaves it to the system when that reaches the disk, and `fdatasync` of the log is all that
 * `synchronous = full` adds (sqlite.org/pragma.html#pragma_synchronous).
 */
export const open = (filename: string): Effect.Effect<Durability, unknown, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.try({ try: () => openSync(`${realpathSync(filename)}-wal`, "r"), catch: (cause) => cause }),
      (descriptor) => Effect.sync(() => closeSync(descriptor))
    ),
    (descriptor) => durability((done) => fdatasync(descriptor, done), eventLoop)
  )
