import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as ErrorCode from "./ErrorCode.js"
import * as Store from "./Store.js"

/** The databases cannot be copied; nothing was copied. */
export class StoreCopyError extends Data.TaggedError("StoreCopyError")<{ readonly message: string }> {}

export interface Copied {
  readonly table: string
  readonly rows: number
}

/** Not copied: each database records its own migrations. */
const migrations = "castellan_migrations"

/** Its migration already inserts its only row. */
const seeded = "account_changes"

const refuse = (message: string) => Effect.fail(new StoreCopyError({ message }))

/** PostgreSQL takes 65,535 parameters per statement, far above this times the widest table's columns. */
const step = 500

/** Most characters of one statement, unless a single row has more: rows of large batches have megabytes, and are in memory. */
const mostCharacters = 8_388_608

interface Table {
  readonly name: string
  readonly columns: ReadonlyArray<string>
  /** Key columns, in reading order. */
  readonly key: ReadonlyArray<string>
}

/** Tables in order of creation, so that references point backwards. */
const tablesOf = (source: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const names = yield* source<{ readonly name: string }>`
      select name from sqlite_master
      where type = 'table' and name not like 'sqlite\\_%' escape '\\' and name <> ${migrations}
      order by rowid`
    return yield* Effect.forEach(names, ({ name }) =>
      Effect.map(
        source<{
          readonly name: string
          readonly pk: number
        }>`select name, pk from pragma_table_info(${name})`,
        (columns): Table => {
          const key = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk)
          return {
            name,
            columns: columns.map((column) => column.name),
            key: key.map((column) => column.name)
          }
        }
      )
    )
  })

const countOf = (sql: SqlClient.SqlClient, name: string) =>
  Effect.map(sql<{ readonly n: number | string }>`select count(*) as n from ${sql(name)}`, ([row]) =>
    Number(row?.n ?? 0)
  )

const versionOf = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ readonly id: number | string | null }>`select max(migration_id) as id from ${sql(migrations)}`,
    ([row]) => Number(row?.id ?? 0)
  )

interface Column {
  readonly column_name: string
  readonly is_identity: string
}

const columnsOf = (target: SqlClient.SqlClient, { name }: Table) =>
  target<Column>`
    select column_name, is_identity from information_schema.columns
    where table_schema = current_schema() and table_name = ${name}`

type Row = Readonly<Record<string, unknown>>

/** Number of the next rows that fit into one statement. */
const countNext = (source: SqlClient.SqlClient, table: Table, beyond: Fragment, key: Fragment) => {
  const lengths = table.columns.map((column) => source`coalesce(length(${source(column)}), 0)`)
  return Effect.map(
    source<{ readonly characters: number }>`
      select ${source.join(" + ", false)(lengths)} as characters from ${source(table.name)} ${beyond}
      order by ${key} limit ${step}`,
    (rows) => {
      let characters = 0
      const end = rows.findIndex((row) => {
        characters += row.characters
        return characters > mostCharacters
      })
      return end === -1 ? step : Math.max(1, end)
    }
  )
}

/** Copies rows in key order, then moves generated numbers beyond the copied ones. */
const copyTable = (source: SqlClient.SqlClient, target: SqlClient.SqlClient, table: Table) =>
  Effect.gen(function* () {
    const there = yield* columnsOf(target, table)
    const known = new Set(there.map(({ column_name }) => column_name))
    if (table.columns.length !== known.size || table.columns.some((column) => !known.has(column)))
      return yield* refuse(`the table ${table.name} has other columns there`)
    const names = target.csv(table.columns.map((column) => target`${target(column)}`))
    const key = source.csv(table.key.map((column) => source`${source(column)}`))
    let last: Row | undefined
    let rows = 0
    for (;;) {
      const after: Row | undefined = last
      const beyond =
        after === undefined
          ? source``
          : source`where (${key}) > (${source.csv(table.key.map((column) => source`${after[column]}`))})`
      const count = yield* countNext(source, table, beyond, key)
      const some = yield* source<Row>`
        select * from ${source(table.name)} ${beyond} order by ${key} limit ${count}`
      last = some.at(-1)
      if (last === undefined) break
      const values = target.csv(
        some.map((row) => target`(${target.csv(table.columns.map((column) => target`${row[column]}`))})`)
      )
      yield* target`
        insert into ${target(table.name)} (${names}) overriding system value values ${values}`
      rows += some.length
    }
    for (const { column_name, is_identity } of there)
      if (is_identity === "YES")
        yield* target`
          select setval(
            pg_get_serial_sequence(${table.name}, ${column_name}),
            (select coalesce(max(${target(column_name)}), 0) + 1 from ${target(table.name)}), false)`
    if ((yield* countOf(target, table.name)) !== rows || (yield* countOf(source, table.name)) !== rows)
      return yield* refuse(`the table ${table.name} has other rows there than it had`)
    return { table: table.name, rows }
  })

/** Copies a SQLite database without other users into an empty PostgreSQL database, atomically. Both need the newest schema. */
export const copy = (
  source: SqlClient.SqlClient,
  target: SqlClient.SqlClient,
  /** Called for each copied table; the copy commits only at the end. */
  onTable: (copied: Copied) => Effect.Effect<void>
): Effect.Effect<ReadonlyArray<Copied>, StoreCopyError> =>
  Store.transaction(target)(
    Effect.gen(function* () {
      if ((yield* versionOf(source)) !== (yield* versionOf(target)))
        return yield* refuse("the two databases are of different versions of the program")
      const tables = yield* tablesOf(source)
      for (const { name } of tables) {
        // Processes that start on it now wait until the copy ends.
        yield* target`lock table ${target(name)} in access exclusive mode`
        const rows = yield* countOf(target, name)
        if (rows > (name === seeded ? 1 : 0))
          return yield* refuse(`the other database is not empty: its table ${name} has ${rows} rows`)
      }
      yield* target`delete from ${target(seeded)}`
      return yield* Effect.forEach(tables, (table) => Effect.tap(copyTable(source, target, table), onTable))
    })
  ).pipe(
    Effect.catchTag("SqlError", (error: SqlError) =>
      refuse(`a database failed while it was copied${ErrorCode.suffix(error)}`)
    ),
    Effect.withTracerEnabled(false)
  )
