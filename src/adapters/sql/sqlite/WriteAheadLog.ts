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

/** A write begins at once; who comes while one is under way shares the next. */
export const durability = (sync: Sync): Durability => {
  let committed = 0
  let demanded = 0
  let written = 0
  let writing = false
  let failure: SqlError | null = null
  let waiting: ReadonlyArray<{ readonly upTo: number; readonly resume: () => void }> = []

  const write = (): void => {
    writing = true
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
      for (const { resume } of over) resume()
      if (waiting.length > 0 && !writing) write()
    })
  }

  const outcome = Effect.suspend(() => (failure === null ? Effect.void : Effect.fail(failure)))

  const upTo = (number: () => number): Effect.Effect<void, SqlError> =>
    Effect.suspend(() => {
      const wanted = number()
      return failure !== null || written >= wanted
        ? outcome
        : Effect.callback<void, SqlError>((resume) => {
            waiting = [...waiting, { upTo: wanted, resume: () => resume(outcome) }]
            if (!writing) write()
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
    (descriptor) => durability((done) => fdatasync(descriptor, done))
  )
