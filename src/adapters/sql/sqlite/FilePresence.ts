import { statSync } from "node:fs"
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { SqliteConnection } from "./SqliteConnection.js"

/** How often the name of the file is looked at, milliseconds. */
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
export const guarded = (
  connection: SqliteConnection,
  filename: string
): Effect.Effect<SqliteConnection, never, Scope.Scope> =>
  Effect.gen(function* () {
    const opened = identityOf(filename)
    let isThere = true
    const look = Effect.suspend(() => {
      const before = isThere
      isThere = identityOf(filename) === opened
      if (isThere === before) return Effect.void
      return isThere
        ? Effect.logInfo("the database file is back, and is used again")
        : Effect.logError(
            `the database file ${filename} was removed or replaced while it is in use: put it back, or restart the service`
          )
    })
    yield* Effect.forkScoped(Effect.interruptible(Effect.repeat(look, Schedule.spaced(lookMillis))))
    return {
      all: (text, parameters) => {
        if (!isThere && !ending.test(text))
          throw new SqlError({
            cause: new Error(`${filename} was removed or replaced`),
            message: "the statement failed"
          })
        return connection.all(text, parameters)
      }
    }
  })
