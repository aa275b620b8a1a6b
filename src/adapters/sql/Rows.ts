import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type * as Store from "./Store.js"
import * as SqliteClient from "./sqlite/SqliteClient.js"

/**
 * Statements whose text is the same however many rows they are of, so that a database compiles each once. A question mark
 * stands for each parameter.
 */

type Sql = Pick<Store.Store, "sql">

const numbered = new Map<string, string>()

/** The text as PostgreSQL has it. */
const forPostgres = (text: string): string => {
  const known = numbered.get(text)
  if (known !== undefined) return known
  let count = 0
  const made = text.replaceAll("?", () => `$${++count}`)
  numbered.set(text, made)
  return made
}

export const statement = <Row extends object>({ sql }: Sql, text: string, values: ReadonlyArray<unknown>) =>
  sql.unsafe<Row>(SqliteClient.isSqlite(sql) ? text : forPostgres(text), values)

/** The values of a list as a condition: the column is one of them. The text of the list's parameter is `listOf` of it. */
export const among = ({ sql }: Sql, column: string): string =>
  SqliteClient.isSqlite(sql) ? `${column} in (select value from json_each(?))` : `${column} = any(?)`

export const listOf = ({ sql }: Sql, values: ReadonlyArray<string | number>): unknown =>
  SqliteClient.isSqlite(sql) ? JSON.stringify(values) : values

export type Type = "text" | "bigint" | "integer" | "smallint" | "bytea"

/** Columns of a list of rows, with their types. */
export type Columns = Readonly<Record<string, Type>>

/** Texts by the columns that they are of. */
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

const unnested = (columns: Columns): string => {
  const names = Object.keys(columns)
  const lists = names.map((name, at) => `$${at + 1}::${columns[name]}[]`)
  return `select * from unnest(${lists.join(", ")}) as given(${names.join(", ")})`
}

type Values = ReadonlyArray<unknown>

/** PostgreSQL has all rows at once, SQLite one after the other. */
const run = (
  { send, sql }: Pick<Store.Store, "send" | "sql">,
  text: string,
  columns: Columns,
  rows: ReadonlyArray<Values>
): Effect.Effect<void, SqlError> => {
  const [first] = rows
  if (first === undefined) return Effect.void
  if (!SqliteClient.isSqlite(sql))
    return send(
      sql.unsafe(
        text,
        Object.keys(columns).map((_, at) => rows.map((row) => row[at]))
      )
    )
  return rows.length === 1
    ? Effect.asVoid(sql.unsafe(text, first))
    : Effect.forEach(rows, (row) => sql.unsafe(text, row), { discard: true })
}

/** Inserts rows of these columns; one that is there already fails the transaction. */
export const insert = (
  store: Pick<Store.Store, "send" | "sql">,
  table: string,
  columns: Columns,
  rows: ReadonlyArray<Values>
): Effect.Effect<void, SqlError> => {
  const names = Object.keys(columns)
  const into = `insert into ${table} (${names.join(", ")})`
  const isSqlite = SqliteClient.isSqlite(store.sql)
  const text = textOf(columns, `${isSqlite} ${table}`, () =>
    isSqlite ? `${into} values (${names.map(() => "?").join(", ")})` : `${into} ${unnested(columns)}`
  )
  return run(store, text, columns, rows)
}

/** Runs a statement for rows, which are `(%) as given` in its text; it has no other parameter. */
export const each = (
  store: Pick<Store.Store, "send" | "sql">,
  text: string,
  columns: Columns,
  rows: ReadonlyArray<Values>
): Effect.Effect<void, SqlError> => {
  const isSqlite = SqliteClient.isSqlite(store.sql)
  const whole = textOf(columns, `${isSqlite} ${text}`, () =>
    text.replace(
      "%",
      isSqlite
        ? `select ${Object.keys(columns)
            .map((name) => `? as ${name}`)
            .join(", ")}`
        : unnested(columns)
    )
  )
  return run(store, whole, columns, rows)
}
