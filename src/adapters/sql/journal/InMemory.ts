import { randomBytes } from "node:crypto"
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Journals } from "../../../application/ports/journal/Journals.js"
import * as Sqlite from "../Sqlite.js"
import * as SqlJournal from "./Journal.js"

/**
 * A journal that ends with its scope: the journal of SQLite over a database that is in no file. For tests, and for
 * embedders that need no durability.
 */
export const make: Effect.Effect<Context.Context<Journals>, never, Scope.Scope> = Effect.flatMap(
  Sqlite.make({ filename: ":memory:" }),
  (sql) =>
    SqlJournal.make({ sealingKey: Redacted.make(randomBytes(32).toString("hex")) }).pipe(
      Effect.provideService(SqlClient.SqlClient, sql)
    )
).pipe(
  Effect.provide(Reactivity.layer),
  // There is neither a disk nor an older schema that could fail.
  Effect.orDie
)

export const layer: Layer.Layer<Journals> = Layer.scopedContext(make)
