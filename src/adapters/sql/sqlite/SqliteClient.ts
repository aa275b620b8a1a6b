import * as Effect from "effect/Effect"
import type * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "effect/sql/Statement"
import type { GroupCommit } from "./GroupCommit.js"

/** A client whose transactions need not wait for anything but the thread. */
export interface SqliteClient extends SqlClient.SqlClient, Pick<GroupCommit, "durable" | "read"> {}

export const isSqlite = (client: SqlClient.SqlClient): client is SqliteClient => "read" in client

export const make = (group: GroupCommit): Effect.Effect<SqliteClient, never, Reactivity.Reactivity> =>
  Effect.map(
    SqlClient.make({
      acquirer: Effect.succeed(group.outside),
      borrower: (use) => use(group.outside),
      compiler: Statement.makeCompilerSqlite(),
      driver: "sqlite-node",
      transactionService: group.transactions,
      spanAttributes: [["db.system.name", "sqlite"]]
    }),
    (client) => {
      const { durable, read, withTransaction } = group
      return Object.assign(client, { withTransaction, durable, read })
    }
  )
