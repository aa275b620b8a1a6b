/** The cells of a text table with column names in the first line: row, column and text of each cell. */
export const of = <Row extends string, Column extends string>(
  table: string
): ReadonlyArray<readonly [Row, Column, string]> => {
  const [columns = [], ...rows] = table
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
  return rows.flatMap(([row, ...cells]) =>
    cells.map((cell, at) => [row as Row, columns[at] as Column, cell] as const)
  )
}
