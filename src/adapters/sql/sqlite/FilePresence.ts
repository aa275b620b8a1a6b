import { statSync } from "node:fs"
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import type { SqliteConnection } from "./SqliteConnection.js"

/** How often the name of the file is looked at while there are statements, milliseconds. */
const lookMillis = 1_000

/** Which file has the name; null: none, or nobody may know. */
const identityOf = (filename: string): string | null => {
  try {
    const { dev, ino } = statSync(filename, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return null
  }
}

/** What ends a transaction that was begun before. */
const ending = /^(?:commit|rollback|release)\b/

/**
 * The connection as long as its file has its name. A file that was removed or replaced takes writes as before, which
 * nobody finds again: until it is back every statement fails, so that nothing new is accepted and nothing is signed.
 */
export const guarded = (connection: SqliteConnection, filename: string): Effect.Effect<SqliteConnection> =>
  Effect.gen(function* () {
    const log = Runtime.runFork(yield* Effect.runtime())
    const clock = yield* Effect.clock
    const opened = identityOf(filename)
    let isThere = true
    let lookedAt = clock.unsafeCurrentTimeMillis()

    const look = (): void => {
      const now = clock.unsafeCurrentTimeMillis()
      // A clock may be set back.
      if (Math.abs(now - lookedAt) < lookMillis) return
      lookedAt = now
      const before = isThere
      isThere = identityOf(filename) === opened
      if (isThere === before) return
      log(
        isThere
          ? Effect.logInfo("the database file is back, and is used again")
          : Effect.logError(
              `the database file ${filename} was removed or replaced while it is in use: put it back, or restart the service`
            )
      )
    }

    return {
      all: (text, parameters) => {
        if (!ending.test(text)) {
          look()
          if (!isThere)
            throw new SqlError({
              cause: new Error(`${filename} was removed or replaced`),
              message: "the statement failed"
            })
        }
        return connection.all(text, parameters)
      }
    }
  })
