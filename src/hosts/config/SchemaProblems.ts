import * as ParseResult from "effect/ParseResult"
import type { Problem } from "../fields/FileFields.js"

/** A place of the file, as problems name it. */
export const pathOf = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text === "" ? String(part) : `${text}.${String(part)}`,
    ""
  )

/**
 * A schema's complaint without the value that it quotes: it may be a secret in the wrong place. A type that has no name
 * is told as an object, not field by field.
 */
const plain = (issue: ParseResult.ArrayFormatterIssue): string => {
  if (issue._tag === "Missing") return "is missing"
  if (issue._tag === "Unexpected") return "is not a known field"
  return issue.message
    .replace(/, actual .*$/s, "")
    .replace(/^Expected \{ readonly .*$/s, "Expected an object")
    .replace(/^Expected/, "expected")
}

/** Everything that a schema complains of, each at its place. */
export const of = (error: ParseResult.ParseError): ReadonlyArray<Problem> =>
  ParseResult.ArrayFormatter.formatErrorSync(error).map((issue) => ({
    path: pathOf(issue.path),
    message: plain(issue)
  }))

export const lines = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> =>
  problems.map(({ message, path }) => (path === "" ? message : `${path}: ${message}`))
