import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import type pg from "pg"
import * as Transaction from "../Transaction.js"
import * as Connection from "./Connection.js"
import * as OwnTransaction from "./Transaction.js"

/** A client whose reads may be of one moment. */
export interface PostgresClient extends SqlClient.SqlClient {
  /** A transaction that only reads: all of its statements see the database as it was when it began. */
  readonly ofOneMoment: SqlClient.SqlClient["withTransaction"]
  /** A transaction that begins when nobody else has a lock of one of these names, and keeps them until it ends. */
  readonly locking: (names: ReadonlyArray<string>) => SqlClient.SqlClient["withTransaction"]
  /** Sends a statement of the transaction, and gives what waits for its rows (`Connection.ahead`). */
  readonly ahead: <A>(
    statement: Statement<A>
  ) => Effect.Effect<Effect.Effect<ReadonlyArray<A>, SqlError>, SqlError>
}

export const isPostgres = (client: SqlClient.SqlClient): client is PostgresClient => "ofOneMoment" in client

const ahead =
  (transactions: Transaction.Service): PostgresClient["ahead"] =>
  (statement) =>
    Effect.withFiber((fiber) => {
      const connection = Transaction.present(transactions, fiber.context)?.[0]
      if (connection === undefined || !Connection.isOwn(connection))
        return Effect.map(statement, Effect.succeed)
      const [text, parameters] = statement.compile()
      return connection.ahead(text, parameters)
    })

export const make = (
  pool: pg.Pool,
  answerTimeoutMillis: number | null
): Effect.Effect<PostgresClient, never, Reactivity.Reactivity> => {
  const outside = Connection.outside(pool)
  const reserve = Connection.reserve(pool)
  const transactions = Transaction.service()
  const transaction = OwnTransaction.make(transactions, reserve, answerTimeoutMillis)
  return Effect.map(
    SqlClient.make({
      acquirer: Effect.succeed(outside),
      borrower: (use) => use(outside),
      transactionAcquirer: reserve,
      transactionService: transactions,
      compiler: PgClient.makeCompiler(),
      driver: "pg",
      spanAttributes: [["db.system.name", "postgresql"]]
    }),
    (client) =>
      Object.assign(client, {
        withTransaction: transaction("writing"),
        ofOneMoment: transaction("reading"),
        locking: (names: ReadonlyArray<string>) => transaction("writing", names),
        ahead: ahead(transactions)
      })
  )
}
