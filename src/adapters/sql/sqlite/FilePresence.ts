import { statSync } from "node:fs"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import type { SqliteConnection } from "./SqliteConnection.js"

/** Interval of checks of the file's name while statements run, in ms. */
const checkMillis = 1_000

interface Fault {
  readonly what: string
  readonly remedy: string
}

const gone: Fault = { what: "was removed or replaced", remedy: "put it back, or restart the service" }
const denied: Fault = {
  what: "is no longer readable",
  remedy: "restore the service user's rights to the file and its folders"
}

/** Identity of the named file. Throws when it is absent or inaccessible. */
const identityOf = (filename: string): string => {
  const { dev, ino } = statSync(filename, { bigint: true })
  return `${dev}:${ino}`
}

const isDenied = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EACCES" || error.code === "EPERM")

/** Fault of a file that was replaced since it was opened, or cannot be checked; null: none. */
export const faultOf = (opened: string, identity: () => string): Fault | null => {
  try {
    return identity() === opened ? null : gone
  } catch (error) {
    return isDenied(error) ? denied : gone
  }
}

/** Statements that end an earlier transaction. */
const ending = /^(?:commit|rollback|release)\b/

/**
 * Guards a connection while its file keeps its name. A removed or replaced file still accepts writes, which are lost: every
 * statement then fails until the file is back, so that no work is accepted or signed.
 */
export const guard = (connection: SqliteConnection, filename: string): Effect.Effect<SqliteConnection> =>
  Effect.gen(function* () {
    const log = Effect.runForkWith(yield* Effect.context())
    const clock = yield* Clock.Clock
    const identity = () => identityOf(filename)
    const opened = yield* Effect.catchDefect(Effect.sync(identity), () => Effect.succeed(""))
    let fault: Fault | null = null
    let checkedAt = clock.currentTimeMillisUnsafe()

    const check = (): void => {
      const now = clock.currentTimeMillisUnsafe()
      // The clock may be set back.
      if (Math.abs(now - checkedAt) < checkMillis) return
      checkedAt = now
      const before = fault
      fault = faultOf(opened, identity)
      if (fault === before) return
      log(
        fault === null
          ? Effect.logInfo("database file is back in use")
          : Effect.logError(`database file ${filename} ${fault.what} while in use; ${fault.remedy}`)
      )
    }

    return {
      all: (text, parameters) => {
        if (!ending.test(text)) {
          check()
          if (fault !== null)
            throw new SqlError({
              reason: new UnknownError({
                cause: new Error(`${filename} ${fault.what}`),
                message: "the statement failed"
              })
            })
        }
        return connection.all(text, parameters)
      }
    }
  })
