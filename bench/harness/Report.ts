import { existsSync, readFileSync, writeFileSync } from "node:fs"
import type { Claim, Result, Row } from "./Claim.js"

const verdict = ({ met }: Row): string => (met === null ? "-" : met ? "met" : "not met")

export const lines = (result: Result): ReadonlyArray<string> =>
  result.rows.map(
    (row) =>
      // prose-ignore-next semicolons: columns of one row
      `  ${row.what}: ${row.castellan}; against ${row.against}; ratio ${row.ratio}; demand ${row.demand}: ${verdict(row)}`
  )

const cell = (text: string): string => text.replaceAll("|", "\\|")

const table = ({ notes, rows }: Result): string =>
  [
    "| | castellan | against | ratio | demand | |",
    "|---|---|---|---|---|---|",
    ...rows.map((row) =>
      [row.what, row.castellan, row.against, row.ratio, row.demand, verdict(row)]
        .map(cell)
        .join(" | ")
        .replace(/^(.*)$/, "| $1 |")
    ),
    ...notes.flatMap((note) => ["", note])
  ].join("\n")

/** Date, and load averages of 1 and 5 minutes. */
export interface Circumstances {
  readonly date: string
  readonly before: string
  readonly after: string
}

export const section = (result: Result, { after, before, date }: Circumstances): string =>
  `${table(result)}\n\nMeasured on ${date}; load average (1 / 5 minutes) ${before} before, ${after} after.`

const begin = (name: string) => `<!-- bench:${name} -->`
const end = (name: string) => `<!-- /bench:${name} -->`

/** Replaces the text between the markers of the name; a claim without markers is not published. */
const replaced = (document: string, name: string, text: string): string => {
  const from = document.indexOf(begin(name))
  const to = document.indexOf(end(name))
  if (from >= 0 && to > from)
    return `${document.slice(0, from + begin(name).length)}\n${text}\n${document.slice(to)}`
  return document
}

/** Writes the results into the document and keeps its other text. */
export const write = (
  file: string,
  machine: ReadonlyArray<string>,
  sections: ReadonlyArray<readonly [Claim, string]>
): void => {
  const found = existsSync(file) ? readFileSync(file, "utf8") : "# Performance\n"
  const described = replaced(found, "machine", machine.join("\n"))
  writeFileSync(
    file,
    sections.reduce((document, [{ name }, text]) => replaced(document, name, text), described)
  )
}
