import type { Said } from "./Operator.js"

type Cell = string | number

/** Rows in columns, two blanks apart. */
export const aligned = (rows: ReadonlyArray<ReadonlyArray<Cell>>): string => {
  const widths = rows.reduce<ReadonlyArray<number>>(
    (most, row) => row.map((cell, column) => Math.max(String(cell).length, most[column] ?? 0)),
    []
  )
  const line = (row: ReadonlyArray<Cell>) =>
    row.map((cell, column) => String(cell).padEnd(widths[column] ?? 0)).join("  ")
  return rows.map((row) => line(row).trimEnd()).join("\n")
}

/** A line for each, and for each element of a list; none for null. */
export type Fields = Readonly<Record<string, Cell | ReadonlyArray<Cell> | null>>

/** One thing, by its parts. */
export const card = (...parts: ReadonlyArray<Fields>): string =>
  aligned(
    parts
      .flatMap(Object.entries<Fields[string]>)
      .flatMap(([name, value]) => (value === null ? [] : [value].flat().map((cell) => [name, cell])))
  )

/** A row for each, its cells under their headings for people, all of it for programs; `nothing` where there are none. */
export const listed = <A>(
  rows: ReadonlyArray<A>,
  nothing: string,
  columns: Readonly<Record<string, (each: A) => Cell>>
): Said => ({
  json: rows,
  text:
    rows.length === 0
      ? nothing
      : aligned([
          Object.keys(columns),
          ...rows.map((each) => Object.values(columns).map((cell) => cell(each)))
        ])
})

/** Unix milliseconds as UTC. */
export const time = (millis: number): string => new Date(millis).toISOString()
