import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { type Code, catalogue, codeAnnotation } from "../../../application/request/Catalogue.js"
import type { Detail } from "../../../application/request/Failure.js"
import { member } from "../../../domain/json/Json.js"
import * as InvalidValue from "../../../domain/primitives/InvalidValue.js"
import type { Steps } from "../../../domain/primitives/Steps.js"
import { closest } from "../../../domain/primitives/Suggestion.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import * as DecodeSteps from "./DecodeSteps.js"

/** Most details of one answer: a hostile body must not be answered with a larger one. */
export const maxDetails = 32

interface Found {
  readonly code: Code
  readonly detail: Detail
}

type WithSchema = Exclude<
  SchemaIssue.Issue,
  ParseResult.Pointer | ParseResult.Unexpected | ParseResult.Missing
>

/** What is known on the way down to the place that failed. */
interface Trail {
  readonly path: string
  readonly code: Code
  /** The outermost message of the value's own schema. */
  readonly message: string | null
}

/**
 * A decoder of request values. The whole value is judged, excess members included; a `Problem` names every place
 * that does not fit, and repeats what the caller sent there only where an integer is expected, and shortened.
 */
export const decoder = <A, I>(
  schema: Schema.Codec<A, I>
): ((value: unknown) => Result.Result<A, Problem>) => {
  const decode = SchemaParser.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  return (value) => Result.mapError(decode(value), (issue) => toProblem(issue))
}

/**
 * A decoder of large request values, which stops now and then. It names the first place that does not fit alone: to
 * collect tens of thousands takes long.
 */
export const largeDecoder = (
  schema: Schema.Top
): ((value: unknown) => Steps<Result.Result<unknown, Problem>>) => {
  const decode = DecodeSteps.decoder(schema)
  return function* (value) {
    return Result.mapError(yield* decode(value), toProblem)
  }
}

/** The places that an issue names, as one line without values. */
export const places = (issue: SchemaIssue.Issue): string =>
  collect(issue)
    .map(({ detail }) => `${detail.path}: ${detail.message}`)
    .join("; ")

const collect = (issue: SchemaIssue.Issue): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  for (const one of walk(issue, { path: "", code: "invalid_request", message: null })) {
    if (found.push(one) === maxDetails) break
  }
  return found
}

const toProblem = (issue: SchemaIssue.Issue): Problem => {
  const found = collect(issue)
  const codes = found.map(({ code }) => code)
  const code =
    codes.find((code) => code !== "invalid_request" && code !== "unknown_field") ??
    (codes.includes("unknown_field") ? "unknown_field" : "invalid_request")
  return problem(
    code,
    found.map(({ detail }) => detail)
  )
}

/** Lazy: of a hostile body's hundred thousand issues only the first few are worded. */
function* walk(issue: SchemaIssue.Issue, trail: Trail): Generator<Found> {
  switch (issue._tag) {
    case "Pointer": {
      const path = extend(trail.path, issue.path)
      yield* walk(issue.issue, { path, code: "invalid_request", message: null })
      break
    }
    case "Missing": {
      const message = `${trail.path === "" ? "the value" : trail.path} is required`
      yield { code: "invalid_request", detail: { path: trail.path, message } }
      break
    }
    case "Unexpected":
      yield unknownField(trail.path, null)
      break
    case "Composite":
      if (AST.isUnion(issue.ast)) yield* walkUnion(issue, describe(trail, issue))
      else yield* walkMembers(issue, trail)
      break
    case "Transformation":
      yield* walk(issue.issue, describe(trail, issue))
      break
    case "Refinement":
      if (issue.kind === "From") yield* walk(issue.issue, describe(trail, issue))
      else yield misfit(issue, describe(trail, issue), null)
      break
    case "Type":
    case "Forbidden":
      yield misfit(issue, describe(trail, issue), issue.message ?? null)
      break
  }
}

function* walkMembers(issue: ParseResult.Composite, trail: Trail): Generator<Found> {
  const names = AST.isTypeLiteral(issue.ast)
    ? issue.ast.propertySignatures.map(({ name }) => String(name))
    : []
  for (const inner of several(issue.issues)) {
    if (inner._tag === "Pointer" && inner.issue._tag === "Unexpected")
      yield unknownField(extend(trail.path, inner.path), closest(String(several(inner.path).at(-1)), names))
    else yield* walk(inner, trail)
  }
}

/** Of a union, the members that the value comes close to; if there are none, what all of them expect. */
function* walkUnion(issue: ParseResult.Composite, trail: Trail): Generator<Found> {
  const close = several(issue.issues).filter(({ _tag }) => _tag === "Composite" || _tag === "Pointer")
  if (trail.message !== null || close.length === 0) yield misfit(issue, trail, null)
  else for (const inner of close) yield* walk(inner, trail)
}

/** What other services take in bodies, and this one in headers. */
const headers: ReadonlyMap<string, string> = new Map([
  ["metadata", "Request-Metadata"],
  ["idempotencyKey", "Idempotency-Key"]
])

const unknownField = (path: string, suggestion: string | null): Found => {
  const found = (message: string, more: { readonly suggestion?: string } = {}): Found => ({
    code: "unknown_field",
    detail: { path, message, ...more }
  })
  if (suggestion !== null) return found(`unknown field; did you mean ${suggestion}?`, { suggestion })
  const header = headers.get(path.slice(path.lastIndexOf(".") + 1))
  return found(
    header === undefined ? "unknown field" : `unknown field; a write takes it as the header ${header}`
  )
}

const misfit = (issue: WithSchema, trail: Trail, own: string | null): Found => {
  const message = trail.message ?? own ?? expected(issue.ast, issue.actual)
  return { code: trail.code, detail: { path: trail.path, message: withNumber(message, issue.actual) } }
}

/** Where an integer is expected, what was given in its place: its kind alone does not tell 0.5 from 5. */
const withNumber = (message: string, actual: unknown): string => {
  const [, expected] = /^(expected [^,]*\binteger\b.*?)(?:, got an? [a-z]+)?$/.exec(message) ?? []
  return expected === undefined || expected.includes(", got ") ? message : `${expected}, got ${given(actual)}`
}

const given = (value: unknown): string => {
  if (typeof value === "string") return `the text ${InvalidValue.given(value)}`
  return typeof value === "object" || value === undefined ? kind(value) : String(value)
}

/** Adds what the schema of this issue is annotated with; what stands further out wins. */
const describe = (trail: Trail, issue: WithSchema): Trail => {
  const code = issue.ast.annotations[codeAnnotation]
  return {
    path: trail.path,
    code: trail.code === "invalid_request" && isCode(code) ? code : trail.code,
    message: trail.message ?? messageOf(issue)
  }
}

const isCode = (value: unknown): value is Code => typeof value === "string" && value in catalogue

const messageOf = (issue: WithSchema): string | null => {
  const annotation = Option.getOrNull(AST.getMessageAnnotation(issue.ast))
  const message = annotation?.(issue) ?? null
  if (typeof message === "string" || message === null) return message
  return "message" in message && typeof message.message === "string" ? message.message : null
}

const several = <T>(items: T | ReadonlyArray<T>): ReadonlyArray<T> =>
  Array.isArray(items) ? items : [items as T]

const extend = (path: string, steps: ParseResult.Path): string =>
  several(steps).reduce<string>(
    (path, step) => (typeof step === "number" ? `${path}[${step}]` : member(path, String(step))),
    path
  )

const expected = (ast: AST.AST, actual: unknown): string => `expected ${noun(ast)}, got ${kind(actual)}`

const noun = (ast: AST.AST): string => {
  switch (ast._tag) {
    case "StringKeyword":
      return "a string"
    case "NumberKeyword":
      return "a number"
    case "BooleanKeyword":
      return "true or false"
    case "TupleType":
      return "an array"
    case "TypeLiteral":
      return "an object"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Union":
      return [...new Set(ast.types.map(noun))].join(" or ")
    case "Refinement":
      return Option.getOrElse(AST.getDescriptionAnnotation(ast), () => noun(ast.from))
    case "Transformation":
      return noun(ast.from)
    default:
      return Option.getOrElse(AST.getIdentifierAnnotation(ast), () => "another value")
  }
}

const kind = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "an array"
  return typeof value === "object" ? "an object" : `a ${typeof value}`
}
