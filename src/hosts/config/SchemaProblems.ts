import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
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
  const problem = (message: string, ...below: ReadonlyArray<string>): Problem => ({
    path: pathOf([...place.path, ...below]),
    message
  })
  const said = SchemaIssues.annotation(place, "message")
  const parts = SchemaIssues.parts(issue, place)
  if (issue._tag === "MissingKey") yield problem("is missing")
  else if (issue._tag === "UnexpectedKey") yield problem(unknown(place.path, whole.root))
  else if (typeof said === "string" && issue._tag !== "Pointer") {
    const quotes = SchemaIssues.annotation(place, quoting) === true
    yield problem(quotes ? `${said}, got ${givenInteger(at(whole.value, place.path))}` : said)
  } else if (issue._tag === "AnyOf" && parts.length === 0) {
    const value = at(whole.value, place.path)
    const kind = SchemaIssues.discriminator(issue.ast)
    if (kind === null || !Predicate.isReadonlyObject(value)) yield problem(`expected ${noun(issue.ast)}`)
    else yield problem(kind.name in value ? `expected ${nouns(kind.types)}` : "is missing", kind.name)
  } else if (issue._tag === "Filter" || parts.length === 0) yield problem(plain(issue))
  else for (const [part, where] of parts) yield* walk(part, where, whole)
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
  if (issue._tag === "InvalidType") return `expected ${noun(issue.ast)}`
  const [first] = format(issue).issues
  return first?.message.replace(/^Expected/, "expected") ?? "does not fit"
}

const noun = (ast: AST.AST): string => {
  if (AST.isUnion(ast)) return nouns(ast.types)
  if (AST.isLiteral(ast)) return JSON.stringify(ast.literal)
  if (AST.isObjects(ast)) return "an object"
  return AST.isArrays(ast) ? "an array" : ast._tag.toLowerCase()
}

const nouns = (types: ReadonlyArray<AST.AST>): string => [...new Set(types.map(noun))].join(" | ")

export const lines = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> =>
  problems.map(({ message, path }) => (path === "" ? message : `${path}: ${message}`))
