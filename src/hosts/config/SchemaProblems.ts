import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { quoteInteger } from "../../domain/primitives/InvalidValue.js"
import * as Suggestion from "../../domain/primitives/Suggestion.js"
import { type Problem, quoting } from "./FileFields.js"

/** A path of the file, as problems name it. */
export const pathOf = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text === "" ? String(part) : `${text}.${String(part)}`,
    ""
  )

/** A decoder that reports all problems of a value, each with its path. */
export const decoder = <A, I>(
  schema: Schema.Codec<A, I>
): ((value: unknown) => Result.Result<A, ReadonlyArray<Problem>>) => {
  const decode = SchemaParser.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  return (value) =>
    Result.mapError(decode(value), (issue) => [...walk(issue, { path: [], value, kinds: [] })])
}

interface Place {
  readonly path: ReadonlyArray<PropertyKey>
  readonly value: unknown
  /** Schemas that the value may fit. */
  readonly kinds: ReadonlyArray<AST.AST>
}

/** A schema's annotation replaces all problems below it. */
function* walk(issue: SchemaIssue.Issue, place: Place): Generator<Problem> {
  const annotations = "ast" in issue ? AST.resolve(issue.ast) : undefined
  const problem = (message: string, { path } = place): Problem => ({ path: pathOf(path), message })
  if (issue._tag === "Pointer") {
    const inner = issue.path.reduce(inside, place)
    if (issue.issue._tag === "UnexpectedKey") yield problem(unknown(issue, place), inner)
    else yield* walk(issue.issue, inner)
  } else if (issue._tag === "MissingKey") yield problem("is missing")
  else if (typeof annotations?.message === "string")
    yield problem(
      `${annotations.message}${annotations[quoting] === true ? `, got ${quoteInteger(place.value)}` : ""}`
    )
  else if (issue._tag === "Encoding") yield* walk(issue.issue, place)
  else if (issue._tag === "Composite")
    for (const part of issue.issues) yield* walk(part, { ...place, kinds: [...place.kinds, issue.ast] })
  else if (issue._tag === "AnyOf" && issue.issues.length > 0)
    for (const part of issue.issues) yield* walk(part, { ...place, kinds: issue.ast.types })
  else if (
    issue._tag === "AnyOf" &&
    issue.ast.types.every(AST.isObjects) &&
    Predicate.isReadonlyObject(place.value)
  ) {
    const [name, types] = discriminator(issue.ast)
    const inner = inside(place, name)
    yield problem(inner.value === undefined ? "is missing" : `expected ${nouns(types)}`, inner)
  } else yield problem(plain(issue))
}

const inside = ({ path, value }: Place, step: PropertyKey): Place => ({
  path: [...path, step],
  value: Predicate.hasProperty(value, step) ? value[step] : undefined,
  kinds: []
})

const unknown = ({ path }: SchemaIssue.Pointer, { kinds }: Place): string => {
  const name = String(path.at(-1))
  const names = kinds
    .filter(AST.isObjects)
    .flatMap(({ propertySignatures }) => propertySignatures.map((property) => String(property.name)))
  // A known name of another kind is not a typing mistake.
  return `is not a known field${names.includes(name) ? "" : Suggestion.tell(name, names)}`
}

/** The property whose literals distinguish the objects of a union. */
const discriminator = ({ types }: AST.Union): readonly [name: PropertyKey, types: ReadonlyArray<AST.AST>] => {
  const properties = types.filter(AST.isObjects).flatMap(({ propertySignatures }) => propertySignatures)
  const literals = properties.filter(({ type }) => AST.isLiteral(type))
  return [literals[0]?.name ?? "", literals.map(({ type }) => type)]
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const plain = (issue: SchemaIssue.Issue): string => {
  if (issue._tag === "InvalidType" || issue._tag === "AnyOf") return `expected ${noun(issue.ast)}`
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
