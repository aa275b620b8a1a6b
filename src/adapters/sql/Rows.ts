import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import * as Store from "./Store.js"

/**
 * Statements whose text does not depend on the number of rows, so that a database compiles each once. Parameters are
 * question marks.
 */

type Sql = Pick<Store.Store, "sql">

const numbered = new Map<string, string>()

const forPostgres = (text: string): string => {
  const known = numbered.get(text)
  if (known !== undefined) return known
  let count = 0
  const made = text.replaceAll("?", () => `$${++count}`)
  numbered.set(text, made)
  return made
}

export const statement = <Row extends object>(
  { sql }: Sql,
  text: string,
  values: ReadonlyArray<unknown>
): Effect.Effect<ReadonlyArray<Row>, SqlError> =>
  Store.isSqlite(sql) ? sql.statement(text, values) : sql.unsafe<Row>(forPostgres(text), values)

/** Inlines a `limit`: SQLite recompiles a statement whose limit is a parameter. */
export const bound = (rows: number): string => String(Math.trunc(rows))

/** Condition: the column is in a list. The parameter is `listOf` of the list. */
export const among = ({ sql }: Sql, column: string): string =>
  Store.isSqlite(sql) ? `${column} in (select value from json_each(?))` : `${column} = any(?)`

/** PostgreSQL numbers go as text: its client would choose a type by the size of each number. */
export const listOf = ({ sql }: Sql, values: ReadonlyArray<string> | ReadonlyArray<number>): unknown => {
  if (Store.isSqlite(sql)) return JSON.stringify(values)
  return typeof values[0] === "number" ? `{${values.join(",")}}` : values
}

export type Type = "text" | "bigint" | "integer" | "smallint" | "bytea"

/** Columns of a list of rows, with their types. */
export type Columns = Readonly<Record<string, Type>>

/** Statements by columns, then by name. */
const made = new WeakMap<Columns, Map<string, string>>()

const textOf = (columns: Columns, name: string, make: () => string): string => {
  const own = made.get(columns) ?? new Map<string, string>()
  made.set(columns, own)
  const known = own.get(name)
  if (known !== undefined) return known
  const text = make()
  own.set(name, text)
  return text
}

type Values = ReadonlyArray<unknown>

const given = (columns: Columns): string => {
  const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
  return `select * from json_to_recordset($1::json) as given(${typed.join(", ")})`
}

const jsonOf = (columns: Columns, rows: ReadonlyArray<Values>): string => {
  const names = Object.keys(columns)
  return JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(
        row.map((value, at) => [
          names[at],
          value instanceof Uint8Array ? `\\x${Buffer.from(value).toString("hex")}` : value
        ])
      )
    )
  )
}

/** Query of the rows of one parameter, `listing` of them; SQLite gives text. */
export const list = ({ sql }: Sql, columns: Columns): string =>
  Store.isSqlite(sql)
    ? `select ${Object.keys(columns)
        .map((name) => `value->>'$.${name}'`)
        .join(", ")} from json_each(?)`
    : given(columns).replace("$1", "?")

export const listing = (columns: Columns, rows: ReadonlyArray<Values>): string => jsonOf(columns, rows)

/** PostgreSQL takes all rows in one statement, SQLite one row each. */
const run = <Row extends object>(
  { sql }: Sql,
  text: string,
  columns: Columns,
  rows: ReadonlyArray<Values>
): Effect.Effect<ReadonlyArray<Row>, SqlError> => {
  const [first] = rows
  if (first === undefined) return Effect.succeed([])
  if (!Store.isSqlite(sql)) return sql.unsafe<Row>(text, [jsonOf(columns, rows)])
  return rows.length === 1
    ? sql.statement<Row>(text, first)
    : Effect.map(
        Effect.forEach(rows, (row) => sql.statement<Row>(text, row)),
        (found) => found.flat()
      )
}

/**
 * Runs statements that change different tables: SQLite one after the other, PostgreSQL as one statement, whose parts do not
 * see each other's changes.
 */
export const together = (
  store: Sql,
  statements: ReadonlyArray<readonly [text: string, values: Values]>
): Effect.Effect<void, SqlError> => {
  const [last] = statements.slice(-1)
  if (last === undefined) return Effect.void
  if (Store.isSqlite(store.sql))
    return Effect.forEach(statements, ([text, values]) => statement(store, text, values), { discard: true })
  const parts = statements.slice(0, -1).map(([text], place) => `part${place} as (${text})`)
  return Effect.asVoid(
    statement(
      store,
      `with ${parts.join(", ")} ${last[0]}`,
      statements.flatMap(([, values]) => values)
    )
  )
}

/** Inserts rows of these columns; a duplicate fails the transaction. */
export const insert = (
  store: Sql,
  table: string,
  columns: Columns,
  rows: ReadonlyArray<Values>
): Effect.Effect<void, SqlError> => {
  const names = Object.keys(columns)
  const into = `insert into ${table} (${names.join(", ")})`
  const isSqlite = Store.isSqlite(store.sql)
  const text = textOf(columns, `${isSqlite} ${table}`, () =>
    isSqlite ? `${into} values (${names.map(() => "?").join(", ")})` : `${into} ${given(columns)}`
  )
  return Effect.asVoid(run(store, text, columns, rows))
}

/** Runs a statement with rows as its only parameter: `(%) as given` in its text. */
export const each = (...statement: Parameters<typeof returning>): Effect.Effect<void, SqlError> =>
  Effect.asVoid(returning(...statement))

/** Likewise; returns the rows of the statement's `returning`. */
export const returning = <Row extends object>(
  store: Sql,
  text: string,
  columns: Columns,
  rows: ReadonlyArray<Values>
): Effect.Effect<ReadonlyArray<Row>, SqlError> => {
  const isSqlite = Store.isSqlite(store.sql)
  const whole = textOf(columns, `${isSqlite} ${text}`, () =>
    text.replace(
      "%",
      isSqlite
        ? `select ${Object.keys(columns)
            .map((name) => `? as ${name}`)
            .join(", ")}`
        : given(columns)
    )
  )
  return run(store, whole, columns, rows)
}
