import type * as ParseResult from "effect/ParseResult"
import type * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Suggestion from "../../domain/primitives/Suggestion.js"
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
  return issue.message
    .replace(/, actual .*$/s, "")
    .replace(/^Expected \{ readonly .*$/s, "Expected an object")
    .replace(/^Expected/, "expected")
}

/** The schemas of what stands at this step of a path. */
const below = (ast: AST.AST, step: PropertyKey): ReadonlyArray<AST.AST> => {
  if (AST.isTypeLiteral(ast))
    return [
      ...ast.propertySignatures.filter(({ name }) => name === step).map(({ type }) => type),
      ...ast.indexSignatures.map(({ type }) => type)
    ]
  if (AST.isTupleType(ast)) return [...ast.elements, ...ast.rest].map(({ type }) => type)
  return within(ast).flatMap((one) => below(one, step))
}

/** The schemas that one is made of at the same place. */
const within = (ast: AST.AST): ReadonlyArray<AST.AST> => {
  if (AST.isUnion(ast)) return ast.types
  if (AST.isRefinement(ast) || AST.isTransformation(ast)) return [ast.from]
  return AST.isSuspend(ast) ? [ast.f()] : []
}

/** The names that an object of the schema may have. */
const namesOf = (ast: AST.AST): ReadonlyArray<string> =>
  AST.isTypeLiteral(ast)
    ? ast.propertySignatures.map(({ name }) => String(name))
    : within(ast).flatMap(namesOf)

const unknown = (root: ReadonlyArray<AST.AST>, path: ReadonlyArray<PropertyKey>): string => {
  const own = path.slice(0, -1).reduce((asts, step) => asts.flatMap((ast) => below(ast, step)), root)
  const name = String(path.at(-1))
  const names = own.flatMap(namesOf)
  // A field of another kind of the same is no typing mistake.
  return `is not a known field${names.includes(name) ? "" : Suggestion.tell(name, names)}`
}

/** Everything that a schema complains of, each at its place. */
export const of = ({ issue }: Schema.SchemaError): ReadonlyArray<Problem> => {
  const root = "ast" in issue && issue._tag !== "Missing" ? [issue.ast] : []
  return SchemaIssue.makeFormatterStandardSchemaV1()(issue).issues.map((one) => ({
    path: pathOf(one.path),
    message: one._tag === "Unexpected" ? unknown(root, one.path) : plain(one)
  }))
}

export const lines = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> =>
  problems.map(({ message, path }) => (path === "" ? message : `${path}: ${message}`))
