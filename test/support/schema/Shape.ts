import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"

/** The parts of a PostgreSQL schema on which a program's statements depend. */
export interface Shape {
  /** Type, nullability and default, by table and column. */
  readonly columns: ReadonlyMap<string, string>
  /** Definitions of constraints, unique indexes and triggers, by table and name. */
  readonly rules: ReadonlyMap<string, string>
  /** Plain indexes, by name. */
  readonly indexes: ReadonlySet<string>
}

const tableOf = (name: string): string => name.split(" ")[0] ?? ""

/** The shape of the tables that the program's migrations create. */
export const read: Effect.Effect<Shape, unknown, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  type Named = { readonly name: string; readonly text: string }
  const columns = yield* sql<Named>`
    select table_name || ' ' || column_name as name,
      concat_ws(' ', data_type, case is_nullable when 'NO' then 'not null' end,
        'default ' || coalesce(column_default, identity_generation)) as text
    from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position`
  const rules = yield* sql<Named>`
    select conrelid::regclass || ' ' || conname as name, pg_get_constraintdef(oid) as text
    from pg_constraint where connamespace = 'public'::regnamespace and conrelid <> 0
    union all
    select tablename || ' ' || indexname, indexdef from pg_indexes
    where schemaname = 'public' and indexdef like 'CREATE UNIQUE%'
    union all
    select tgrelid::regclass || ' ' || tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal`
  const indexes = yield* sql<{ readonly name: string }>`
    select indexname as name from pg_indexes where schemaname = 'public' and indexdef not like 'CREATE UNIQUE%'`
  const byName = (rows: ReadonlyArray<Named>) => new Map(rows.map(({ name, text }) => [name, text]))
  return { columns: byName(columns), rules: byName(rules), indexes: new Set(indexes.map(({ name }) => name)) }
})

const tablesOf = ({ columns }: Shape): ReadonlySet<string> => new Set([...columns.keys()].map(tableOf))

/** Changes in `after` that may break a program written for `before`. */
export const obstacles = (before: Shape, after: Shape): ReadonlyArray<string> => {
  const known = tablesOf(before)
  const changed = (kind: "columns" | "rules") =>
    [...before[kind]].flatMap(([name, text]) =>
      after[kind].get(name) === text ? [] : [`${name}: ${text} became ${after[kind].get(name) ?? "nothing"}`]
    )
  const demanded = [...after.columns].flatMap(([name, text]) =>
    !before.columns.has(name) && known.has(tableOf(name)) && /not null(?!.*default)/.test(text)
      ? [`${name} is new, and an insert that does not name it fails`]
      : []
  )
  /** Rows that omit the column get its default, which the database has checked against the rule. */
  const ofNewColumn = (name: string, text: string) =>
    [...after.columns.keys()].some((column) => {
      const [table, own = ""] = column.split(" ")
      return table === tableOf(name) && !before.columns.has(column) && new RegExp(`\\b${own}\\b`).test(text)
    })
  const ruled = [...after.rules].flatMap(([name, text]) => {
    if (before.rules.has(name)) return []
    if (known.has(tableOf(name)))
      return text.startsWith("CHECK") && ofNewColumn(name, text) ? [] : [`${name} is new: ${text}`]
    const [, target] = /REFERENCES (\w+)/.exec(text) ?? []
    return target !== undefined && known.has(target) && !text.includes("ON DELETE CASCADE")
      ? [`${name} keeps rows of ${target} from being deleted: ${text}`]
      : []
  })
  return [...changed("columns"), ...changed("rules"), ...demanded, ...ruled]
}

/** Drops everything that `after` adds to `before`. */
export const undo = (before: Shape, after: Shape) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const known = tablesOf(before)
    for (const name of after.indexes) if (!before.indexes.has(name)) yield* sql`drop index ${sql(name)}`
    for (const table of tablesOf(after)) if (!known.has(table)) yield* sql`drop table ${sql(table)} cascade`
    for (const name of after.columns.keys()) {
      const [table = "", column = ""] = name.split(" ")
      if (known.has(table) && !before.columns.has(name))
        yield* sql`alter table ${sql(table)} drop column ${sql(column)}`
    }
  })
