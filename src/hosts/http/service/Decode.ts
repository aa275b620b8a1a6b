import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { type Code, catalogue, codeAnnotation } from "../../../application/failures/Catalogue.js"
import type { Detail } from "../../../application/failures/Failure.js"
import { member } from "../../../domain/json/Json.js"
import * as InvalidValue from "../../../domain/primitives/InvalidValue.js"
import { closest } from "../../../domain/primitives/Suggestion.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"

/**
 * Decodes the values of requests for `Endpoints`, and turns the issues of a schema into the paths, codes and messages
 * of a `Problem`.
 */

/** Most details of one error: a hostile body must not cause a larger response. */
export const maxDetails = 32

interface Found {
  readonly code: Code
  readonly detail: Detail
}

/** Position of a fault in the value, and the schema expected there. */
interface Place {
  readonly path: string
  /** Last step of the path. */
  readonly name: string
  readonly ast: AST.AST | undefined
  readonly value: unknown
}

export type Decoder<A = unknown> = (value: unknown, isLarge?: boolean) => Result.Result<A, Problem>

/**
 * Decodes request values, checking the whole value, including unknown members. A `Problem` names every fault; it quotes the
 * caller's value, shortened, only where an integer or one of a few literals is expected. Of a large value it names only the first fault: collecting
 * tens of thousands takes long.
 */
export const decoder = <A, I>(schema: Schema.Codec<A, I>): Decoder<A> => {
  const decode = SchemaParser.decodeUnknownResult(schema)
  return (value, isLarge = false) =>
    Result.mapError(
      decode(value, { errors: isLarge ? "first" : "all", onExcessProperty: "error" }),
      (issue) => problemOf(issue, schema, value)
    )
}

export const problemOf = (issue: SchemaIssue.Issue, schema: Schema.Top, value: unknown): Problem =>
  toProblem(issue, { path: "", name: "", ast: schema.ast, value })

const toProblem = (issue: SchemaIssue.Issue, whole: Place): Problem => {
  const found: Array<Found> = []
  for (const one of walk(issue, whole)) {
    if (found.push(one) === maxDetails) break
  }
  const codes = found.map(({ code }) => code)
  const code =
    codes.find((code) => code !== "invalid_request" && code !== "unknown_field") ??
    (codes.includes("unknown_field") ? "unknown_field" : "invalid_request")
  return problem(
    code,
    found.map(({ detail }) => detail)
  )
}

/** Lazy: only the first few of a hostile body's hundred thousand issues are formatted. */
function* walk(issue: SchemaIssue.Issue, place: Place): Generator<Found> {
  switch (issue._tag) {
    case "Pointer":
      yield* walk(issue.issue, issue.path.reduce(inside, place))
      break
    case "MissingKey": {
      const message = `${place.path === "" ? "the value" : place.path} is required`
      yield { code: "invalid_request", detail: { path: place.path, message } }
      break
    }
    case "UnexpectedKey":
      yield unknownField(place, issue.ast)
      break
    case "Composite":
      for (const inner of onceEach(issue.issues)) yield* walk(inner, { ...place, ast: issue.ast })
      break
    case "AnyOf":
      yield* walkUnion(issue, place)
      break
    case "Encoding":
      yield* walk(issue.issue, place)
      break
    case "Filter":
      if (issue.issue._tag === "InvalidValue") yield misfit(issue, place)
      else yield* walk(issue.issue, place)
      break
    default:
      yield misfit(issue, place)
  }
}

/** Keeps the first failed check of a value: together they are one fault. */
const onceEach = (issues: ReadonlyArray<SchemaIssue.Issue>): ReadonlyArray<SchemaIssue.Issue> => {
  const first = issues.find(({ _tag }) => _tag === "Filter")
  return first === undefined ? issues : issues.filter((issue) => issue === first || issue._tag !== "Filter")
}

/** Members of the value that a union member does not know; null: the value is of another kind. */
const strangers = (issue: SchemaIssue.Issue, value: unknown): number | null => {
  const issues = issue._tag === "Composite" ? issue.issues : [issue]
  if (issues.every(({ _tag }) => _tag === "Filter")) return typeof value === "object" ? 0 : null
  if (issue._tag !== "Composite") return null
  return issues.filter((one) => one._tag === "Pointer" && one.issue._tag === "UnexpectedKey").length
}

/** The members of a union's objects with one literal each. */
const tags = (ast: AST.AST | undefined) =>
  ast !== undefined && AST.isUnion(ast)
    ? ast.types
        .filter(AST.isObjects)
        .flatMap(({ propertySignatures }) => propertySignatures.filter(({ type }) => AST.isLiteral(type)))
    : []

/** The union members that know most of the value's members; without any that come close, all members' expectations. */
function* walkUnion(issue: SchemaIssue.AnyOf, place: Place): Generator<Found> {
  const [tag, ...others] = issue.issues.length === 0 && Predicate.isObject(place.value) ? tags(place.ast) : []
  if (tag !== undefined) {
    const { path, value } = inside(place, tag.name)
    const expected = `expected ${[tag, ...others].map(({ type }) => noun(type)).join(" or ")}, got ${chosen(value)}`
    const message = value === undefined ? `${path} is required` : expected
    yield { code: "invalid_request", detail: { path, message } }
    return
  }
  const close = issue.issues.flatMap((inner) => {
    const unknown = strangers(inner, place.value)
    return unknown === null ? [] : [{ inner, unknown }]
  })
  const least = Math.min(...close.map(({ unknown }) => unknown))
  if (close.length === 0 || annotationOf(annotationsOf(place.ast), "message") !== null)
    yield misfit(issue, place)
  else for (const { inner, unknown } of close) if (unknown === least) yield* walk(inner, place)
}

const inside = ({ ast, path, value }: Place, step: PropertyKey): Place => ({
  path: typeof step === "number" ? `${path}[${step}]` : member(path, String(step)),
  name: String(step),
  ast: ast === undefined ? undefined : partOf(ast, step),
  value: typeof value === "object" && value !== null ? Reflect.get(value, step) : undefined
})

const partOf = (ast: AST.AST, step: PropertyKey): AST.AST | undefined => {
  if (AST.isArrays(ast)) return ast.elements[Number(step)] ?? ast.rest[0]
  if (!AST.isObjects(ast)) return undefined
  return ast.propertySignatures.find(({ name }) => name === step)?.type ?? ast.indexSignatures[0]?.type
}

/** Members that other services take in bodies and this one in headers. */
const headers: ReadonlyMap<string, string> = new Map([
  ["metadata", "Request-Metadata"],
  ["idempotencyKey", "Idempotency-Key"]
])

const unknownField = ({ name, path }: Place, ast: AST.AST): Found => {
  const found = (message: string, more: { readonly suggestion?: string } = {}): Found => ({
    code: "unknown_field",
    detail: { path, message, ...more }
  })
  const names = AST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
  const suggestion = closest(name, names)
  if (suggestion !== null) return found(`unknown field; did you mean ${suggestion}?`, { suggestion })
  const header = headers.get(name)
  return found(
    header === undefined ? "unknown field" : `unknown field; a write takes it as the header ${header}`
  )
}

type Misfit = Exclude<
  SchemaIssue.Issue,
  SchemaIssue.Pointer | SchemaIssue.MissingKey | SchemaIssue.UnexpectedKey
>

const misfit = (issue: Misfit, { ast, path, value }: Place): Found => {
  const all = annotationsOf(ast, issue._tag === "Filter" ? issue.filter : undefined)
  const inner = issue._tag === "Filter" ? issue.issue : issue
  const own = "annotations" in inner ? inner.annotations : undefined
  const message =
    annotationOf(all, "message") ?? annotationOf([own], "message") ?? expected(issue, ast, value)
  const code = all.map((one) => one?.[codeAnnotation]).find(isCode) ?? "invalid_request"
  return { code, detail: { path, message: withNumber(message, value) } }
}

type Annotations = Schema.Annotations.Annotations | undefined

/**
 * Annotations of a schema, latest first: of its checks, down to the failed check or all of them, then of the schema itself.
 */
const annotationsOf = (
  ast: AST.AST | undefined,
  failed?: AST.Filter<unknown>
): ReadonlyArray<Annotations> => {
  const checks = (ast?.checks ?? []).toReversed()
  const until = checks.findIndex((check) => holds(check, failed))
  return until < 0
    ? [...checks.map(({ annotations }) => annotations), ast?.annotations]
    : [...checks.slice(0, until + 1).map(({ annotations }) => annotations), failed?.annotations]
}

const holds = (check: AST.Check<never>, filter: AST.Filter<unknown> | undefined): boolean =>
  check === filter || (check._tag === "FilterGroup" && check.checks.some((one) => holds(one, filter)))

/** The first annotated text. */
const annotationOf = (all: ReadonlyArray<Annotations>, name: "message" | "expected"): string | null =>
  all.map((one) => one?.[name]).find((text) => typeof text === "string") ?? null

/** Adds the given value where an integer is expected: "a number" does not distinguish 0.5 from 5. */
const withNumber = (message: string, actual: unknown): string => {
  const [, expected] = /^(expected [^,]*\binteger\b.*?)(?:, got an? [a-z]+)?$/.exec(message) ?? []
  return expected === undefined || expected.includes(", got ") ? message : `${expected}, got ${given(actual)}`
}

const given = (value: unknown): string => {
  if (typeof value === "string") return `the text ${InvalidValue.quote(value)}`
  return typeof value === "object" || value === undefined ? kind(value) : String(value)
}

const isCode = (value: unknown): value is Code => typeof value === "string" && value in catalogue

const expected = (issue: Misfit, ast: AST.AST | undefined, value: unknown): string =>
  `expected ${wanted(issue, ast)}, got ${ast !== undefined && isChoice(ast) ? chosen(value) : kind(value)}`

/** A value where a few are known: no secret stands there, so it is repeated. */
const chosen = (value: unknown): string =>
  typeof value === "string" ? InvalidValue.quote(value) : kind(value)

const isChoice = (ast: AST.AST): boolean =>
  AST.isLiteral(ast) || (AST.isUnion(ast) && ast.types.every(isChoice))

const wanted = (issue: Misfit, ast: AST.AST | undefined): string => {
  if (ast !== undefined && AST.isUnion(ast)) return noun(ast)
  if (issue._tag === "Filter") return annotationOf([issue.filter.annotations], "expected") ?? "another value"
  const kinds = "ast" in issue ? issue.ast : ast
  return kinds === undefined ? "another value" : noun(kinds)
}

const noun = (ast: AST.AST): string => {
  switch (ast._tag) {
    case "String":
      return "a string"
    case "Number":
      return "a number"
    case "Boolean":
      return "true or false"
    case "Null":
      return "null"
    case "Arrays":
      return "an array"
    case "Objects":
      return "an object"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Union":
      return [...new Set(ast.types.map(choice))].join(" or ")
    default:
      return "another value"
  }
}

/** A union member, as narrow as possible. */
const choice = (type: AST.AST): string => {
  const ast = AST.toEncoded(type)
  return annotationOf([ast.checks?.at(-1)?.annotations], "expected") ?? noun(ast)
}

const kind = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "an array"
  return typeof value === "object" ? "an object" : `a ${typeof value}`
}
