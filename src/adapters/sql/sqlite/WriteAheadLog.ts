import { closeSync, fdatasync, openSync, realpathSync } from "node:fs"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { SqlError, UnknownError } from "effect/sql/SqlError"

/**
 * Tracks which commits are on the disk. Waiters share a write. After a failed write all waits fail forever: the disk's part
 * of the log is then unknown, and a later successful write would not change that.
 */
export interface Durability {
  /**
   * Records a commit to the log. `isDemanded`: a waiter follows, and readers of the commit are answered only once it is on
   * the disk.
   */
  readonly committed: (isDemanded: boolean) => void
  /** Waits until all earlier commits are on the disk. */
  readonly durable: Effect.Effect<void, SqlError>
  /** Waits until all earlier demanded commits are on the disk, so that their content may be revealed. */
  readonly demandedDurable: Effect.Effect<void, SqlError>
}

/** Writes the log to the disk, outside the event loop, and calls back. */
export type Sync = (done: (error: Error | null) => void) => void

/** Starts a write immediately; waiters that arrive during a write share the next one. */
export const durability = (sync: Sync): Durability => {
  let committed = 0
  let demanded = 0
  let written = 0
  let writing = false
  let failure: SqlError | null = null
  let waiting: ReadonlyArray<{ readonly upTo: number; readonly resume: () => void }> = []

  const write = (): void => {
    writing = true
    // Later commits may or may not be in this write.
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
    demandedDurable: upTo(() => demanded)
  }
}

/** In memory there is no disk. */
export const inMemory: Durability = {
  committed: () => undefined,
  durable: Effect.void,
  demandedDurable: Effect.void
}

/**
 * Durability of an open database file with a write-ahead log. With `synchronous = normal` SQLite writes commits to the log
 * and lets the system decide when the log reaches the disk; `synchronous = full` adds only `fdatasync` of the log
 * (sqlite.org/pragma.html#pragma_synchronous).
 */
export const open = (filename: string): Effect.Effect<Durability, unknown, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.try({ try: () => openSync(`${realpathSync(filename)}-wal`, "r"), catch: (cause) => cause }),
      (descriptor) => Effect.sync(() => closeSync(descriptor))
    ),
    (descriptor) => durability((done) => fdatasync(descriptor, done))
  )
