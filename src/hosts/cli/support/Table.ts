type Cell = string | number

/** Rows in columns, two blanks apart. */
export const aligned = (rows: ReadonlyArray<ReadonlyArray<Cell>>): string => {
  const widths = rows.reduce<ReadonlyArray<number>>(
    (most, row) => row.map((cell, column) => Math.max(String(cell).length, most[column] ?? 0)),
    []
  )
  return rows
    .map((row) =>
      row
        .map((cell, column) => String(cell).padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** Cells of a row, by their headings. */
export type Columns<A> = Readonly<Record<string, (each: A) => Cell>>

/** A row for each, its cells under their headings; `nothing` where there are none. */
export const listed = <A>(all: ReadonlyArray<A>, nothing: string, columns: Columns<A>): string =>
  all.length === 0
    ? nothing
    : aligned([Object.keys(columns), ...all.map((each) => Object.values(columns).map((cell) => cell(each)))])

/** Unix milliseconds as UTC. */
export const time = (millis: number): string => new Date(millis).toISOString()
