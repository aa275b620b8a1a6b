/** Progress lines and checks of a run, as plain text. */
export interface Report {
  readonly step: (title: string) => void
  /** Checks a fact independently of the service. */
  readonly check: (what: string, holds: boolean, seen?: unknown) => void
  readonly note: (text: string) => void
  readonly table: (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>) => void
  readonly passed: () => number
  readonly failed: () => number
}

const shown = (value: unknown): string =>
  JSON.stringify(value, (_, part) => (typeof part === "bigint" ? part.toString() : part)) ?? "undefined"

export const make = (write: (line: string) => void): Report => {
  let steps = 0
  let passed = 0
  let failed = 0
  return {
    step: (title) => {
      steps += 1
      write(`\n${steps}. ${title}`)
    },
    check: (what, holds, seen) => {
      if (holds) passed += 1
      else failed += 1
      write(
        `   ${holds ? "ok    " : "FAILED"} ${what}${holds || seen === undefined ? "" : `: ${shown(seen)}`}`
      )
    },
    note: (text) => write(`   ${text}`),
    table: (head, rows) => {
      const widths = head.map((title, column) =>
        Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length))
      )
      const line = (cells: ReadonlyArray<string>) =>
        `   ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd()
      write(line(head))
      write(line(widths.map((width) => "-".repeat(width))))
      for (const row of rows) write(line(row))
    },
    passed: () => passed,
    failed: () => failed
  }
}
