import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import type * as Fiber from "effect/Fiber"
import type * as SqlClient from "effect/sql/SqlClient"
import { TransactionConnection } from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"

/** A statement that is run where it stands: without a span, a scope and a fiber's steps around it. */
class DirectStatement<A extends object>
  extends Effectable.Class<ReadonlyArray<A>, SqlError>
  implements Statement.Statement<A>
{
  readonly [Statement.FragmentId]: (_: never) => Statement.FragmentId

  constructor(
    private readonly plain: Statement.Statement<A>,
    private readonly outside: Connection
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
    return Effect.withFiber((fiber) => {
      if (fiber.getRef(Statement.currentTransformer)._tag === "Some") return this.plain
      const [text, parameters] = this.plain.compile()
      return (connectionOf(fiber) ?? this.outside).execute(text, parameters, undefined)
    })
  }
}

/** The connection of the transaction that the fiber is in; null: it is in none. */
export const connectionOf = (fiber: Fiber.Fiber<unknown, unknown>): Connection | null => {
  const own = Context.getOption(fiber.context, TransactionConnection)
  return own._tag === "Some" ? own.value[0] : null
}

/** The client with such statements; those of no transaction are run by `outside`. */
export const client = (plain: SqlClient.SqlClient, outside: Connection): SqlClient.SqlClient => {
  function sql<A extends object>(
    strings: TemplateStringsArray,
    ...values: Array<unknown>
  ): Statement.Statement<A>
  function sql(name: string): Statement.Identifier
  function sql<A extends object>(
    first: string | TemplateStringsArray,
    ...values: Array<unknown>
  ): Statement.Identifier | Statement.Statement<A> {
    return typeof first === "string" ? plain(first) : new DirectStatement(plain<A>(first, ...values), outside)
  }
  return Object.assign(sql, plain)
}
