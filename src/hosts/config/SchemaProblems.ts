import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { givenInteger } from "../../domain/primitives/InvalidValue.js"
import * as SchemaIssues from "../../domain/primitives/SchemaIssues.js"
import * as Suggestion from "../../domain/primitives/Suggestion.js"
import { type Problem, quoting } from "../fields/FileFields.js"

/** A place of the file, as problems name it. */
export const pathOf = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text === "" ? String(part) : `${text}.${String(part)}`,
    ""
  )

/** A decoder that says everything that is wrong with a value, each at its place. */
export const decoder = <A, I>(
  schema: Schema.Codec<A, I>
): ((value: unknown) => Result.Result<A, ReadonlyArray<Problem>>) => {
  const decode = SchemaParser.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  const root = SchemaIssues.root(schema)
  return (value) => Result.mapError(decode(value), (issue) => [...walk(issue, root, { root, value })])
}

interface Whole {
  readonly root: SchemaIssues.Place
  readonly value: unknown
}

/** What a schema says of itself stands for all that is wrong below it. */
function* walk(issue: SchemaIssue.Issue, place: SchemaIssues.Place, whole: Whole): Generator<Problem> {
  const message = messageOf(issue, place, whole)
  if (message !== null) yield { path: pathOf(place.path), message }
  else for (const [part, where] of SchemaIssues.parts(issue, place)) yield* walk(part, where, whole)
}

/** Null: its parts say what is wrong. */
const messageOf = (
  issue: SchemaIssue.Issue,
  place: SchemaIssues.Place,
  { root, value }: Whole
): string | null => {
  if (issue._tag === "Pointer") return null
  if (issue._tag === "MissingKey") return "is missing"
  if (issue._tag === "UnexpectedKey") return unknown(place.path, root)
  const said = SchemaIssues.annotation(place, "message")
  if (typeof said === "string")
    return SchemaIssues.annotation(place, quoting) === true
      ? `${said}, got ${givenInteger(at(value, place.path))}`
      : said
  return issue._tag === "Filter" || SchemaIssues.parts(issue, place).length === 0 ? plain(issue) : null
}

const unknown = (path: ReadonlyArray<PropertyKey>, { schemas }: SchemaIssues.Place): string => {
  const name = String(path.at(-1))
  const names = SchemaIssues.names(path.slice(0, -1).reduce(SchemaIssues.members, schemas))
  // A field of another kind of the same is no typing mistake.
  return `is not a known field${names.includes(name) ? "" : Suggestion.tell(name, names)}`
}

const at = (value: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>((value, step) => (Predicate.hasProperty(value, step) ? value[step] : undefined), value)

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const plain = (issue: SchemaIssue.Issue): string => {
  const [first] = format(issue).issues
  return (first?.message ?? "does not fit").replace(/^Expected/, "expected")
}

export const lines = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> =>
  problems.map(({ message, path }) => (path === "" ? message : `${path}: ${message}`))
