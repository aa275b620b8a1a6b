import type { Said } from "./Operator.js"

type Cell = string | number

/** Rows in columns, separated by two blanks. */
export const align = (rows: ReadonlyArray<ReadonlyArray<Cell>>): string => {
  const widths = rows.reduce<ReadonlyArray<number>>(
    (most, row) => row.map((cell, column) => Math.max(String(cell).length, most[column] ?? 0)),
    []
  )
  const line = (row: ReadonlyArray<Cell>) =>
    row.map((cell, column) => String(cell).padEnd(widths[column] ?? 0)).join("  ")
  return rows.map((row) => line(row).trimEnd()).join("\n")
}

/** One line per field and per list element; null fields are left out. */
export type Fields = Readonly<Record<string, Cell | ReadonlyArray<Cell> | null>>

export const card = (...parts: ReadonlyArray<Fields>): string =>
  align(
    parts
      .flatMap(Object.entries<Fields[string]>)
      .flatMap(([name, value]) => (value === null ? [] : [value].flat().map((cell) => [name, cell])))
  )

/** Rows as a table for people and as JSON for programs; `nothing` replaces an empty table. */
export const list = <A>(
  rows: ReadonlyArray<A>,
  nothing: string,
  columns: Readonly<Record<string, (each: A) => Cell>>
): Said => ({
  json: rows,
  text:
    rows.length === 0
      ? nothing
      : align([Object.keys(columns), ...rows.map((each) => Object.values(columns).map((cell) => cell(each)))])
})

/** Unix milliseconds as UTC. */
export const time = (millis: number): string => new Date(millis).toISOString()
