import type * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import type { GroupCommit } from "./GroupCommit.js"

/** A client whose transactions need not wait for anything but the thread. */
export interface SqliteClient extends SqlClient.SqlClient, Pick<GroupCommit, "atOnce" | "durable" | "read"> {}

export const isSqlite = (client: SqlClient.SqlClient): client is SqliteClient => "atOnce" in client

/** A statement that is run where it stands: without a span, a scope and a fiber's steps around it. */
class DirectStatement<A extends object>
  extends Effectable.Class<ReadonlyArray<A>, SqlError>
  implements Statement.Statement<A>
{
  readonly [Statement.FragmentId]: (_: never) => Statement.FragmentId

  constructor(
    private readonly plain: Statement.Statement<A>,
    private readonly group: GroupCommit
  ) {
    super()
    this[Statement.FragmentId] = plain[Statement.FragmentId]
  }

  get segments() {
    return this.plain.segments
  }
  get raw() {
    return this.plain.raw
  }
  get withoutTransform() {
    return this.plain.withoutTransform
  }
  get stream() {
    return this.plain.stream
  }
  get values() {
    return this.plain.values
  }
  get unprepared() {
    return this.plain.unprepared
  }
  get compile() {
    return this.plain.compile.bind(this.plain)
  }

  override commit(): Effect.Effect<ReadonlyArray<A>, SqlError> {
    return Effect.withFiberRuntime((fiber) => {
      if (fiber.getFiberRef(Statement.currentTransformer)._tag === "Some") return this.plain
      const own = Context.getOption(fiber.currentContext, SqlClient.TransactionConnection)
      const [text, parameters] = this.plain.compile()
      return (own._tag === "Some" ? own.value[0] : this.group.outside).execute(text, parameters, undefined)
    })
  }
}

export const make = (group: GroupCommit): Effect.Effect<SqliteClient, never, Reactivity.Reactivity> =>
  Effect.map(
    SqlClient.make({
      acquirer: Effect.succeed(group.outside),
      compiler: Statement.makeCompilerSqlite(),
      spanAttributes: [["db.system.name", "sqlite"]]
    }),
    (client) => {
      function sql<A extends object>(
        strings: TemplateStringsArray,
        ...values: Array<unknown>
      ): Statement.Statement<A>
      function sql(name: string): Statement.Identifier
      function sql<A extends object>(
        first: string | TemplateStringsArray,
        ...values: Array<unknown>
      ): Statement.Identifier | Statement.Statement<A> {
        return typeof first === "string"
          ? client(first)
          : new DirectStatement(client<A>(first, ...values), group)
      }
      const { atOnce, durable, read, withTransaction } = group
      return Object.assign(sql, client, { withTransaction, atOnce, durable, read })
    }
  )
