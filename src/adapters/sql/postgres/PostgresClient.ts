import type * as SqlClient from "@effect/sql/SqlClient"

/** A client whose reads may be of one moment. */
export interface PostgresClient extends SqlClient.SqlClient {
  /** A transaction that only reads: all of its statements see the database as it was when it began. */
  readonly ofOneMoment: SqlClient.SqlClient["withTransaction"]
}

export const isPostgres = (client: SqlClient.SqlClient): client is PostgresClient => "ofOneMoment" in client
