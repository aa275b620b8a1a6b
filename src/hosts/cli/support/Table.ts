/** Rows in columns, two blanks apart. */
export const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows.reduce<ReadonlyArray<number>>(
    (most, row) => row.map((cell, column) => Math.max(cell.length, most[column] ?? 0)),
    []
  )
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** Unix milliseconds as UTC. */
export const time = (millis: number): string => new Date(millis).toISOString()
