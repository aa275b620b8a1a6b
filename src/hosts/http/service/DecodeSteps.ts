import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import type { Steps } from "../../../domain/primitives/Steps.js"

/** A decoded value, or the first place that does not fit. */
type Decoded = Result.Result<unknown, SchemaIssue.Issue>

type Reader = (value: unknown) => Steps<Decoded>

/** A value that is judged in one go. */
const whole = (ast: AST.AST): Reader => {
  const decode = SchemaParser.decodeUnknownResult(Schema.make<unknown, unknown>(ast), {
    errors: "first",
    onExcessProperty: "error"
  })
  // biome-ignore lint/correctness/useYield: it is judged in one go
  return function* (value) {
    return decode(value)
  }
}

/** The issue of a member or an element, as the issue of what holds it. */
const inside = (ast: AST.AST, value: unknown, place: string | number, issue: SchemaIssue.Issue): Decoded =>
  Result.fail(new ParseResult.Composite(ast, value, new ParseResult.Pointer(place, value, issue)))

/** An array of any number of elements of one schema: each is judged on its own. */
const elements = (element: AST.AST, ast: AST.AST): Reader => {
  const read = reader(element)
  const judge = whole(ast)
  return function* (value) {
    if (!Array.isArray(value)) return yield* judge(value)
    const decoded: Array<unknown> = []
    for (const [index, one] of value.entries()) {
      const each = yield* read(one)
      if (Result.isFailure(each)) return inside(ast, value, index, each.failure)
      decoded.push(each.success)
      yield
    }
    return Result.succeed(decoded)
  }
}

/** An object: each member is judged on its own, in the order of the schema, which tells the first place. */
const members = (properties: ReadonlyArray<AST.PropertySignature>, ast: AST.AST): Reader => {
  const readers = properties.map((property) => ({
    property,
    name: String(property.name),
    read: reader(property.type)
  }))
  const names = new Set(readers.map(({ name }) => name))
  const judge = whole(ast)
  return function* (value) {
    if (!Predicate.isObject(value)) return yield* judge(value)
    // What does not belong is found before any member is judged.
    if (Object.keys(value).some((name) => !names.has(name))) return yield* judge(value)
    const decoded: Array<readonly [string, unknown]> = []
    for (const { name, property, read } of readers) {
      if (!Object.hasOwn(value, name)) {
        if (property.isOptional) continue
        return inside(ast, value, name, new ParseResult.Missing(property))
      }
      const each = yield* read(value[name])
      if (Result.isFailure(each)) return inside(ast, value, name, each.failure)
      decoded.push([name, each.success])
      yield
    }
    return Result.succeed(Object.fromEntries(decoded))
  }
}

/** An object of whatever members: there is nothing to judge in it. */
const anyMembers = (ast: AST.AST): Reader => {
  const judge = whole(ast)
  return function* (value) {
    return Predicate.isObject(value) ? Result.succeed(value) : yield* judge(value)
  }
}

const isOfAnyMembers = ({ indexSignatures: [only, ...more], propertySignatures }: AST.TypeLiteral): boolean =>
  only !== undefined &&
  more.length + propertySignatures.length === 0 &&
  AST.isStringKeyword(only.parameter) &&
  AST.isUnknownKeyword(only.type)

/** A condition on what another schema has decoded. */
const refinement = (ast: AST.Refinement): Reader => {
  const read = reader(ast.from)
  return function* (value) {
    const decoded = yield* read(value)
    if (Result.isFailure(decoded))
      return Result.fail(new ParseResult.Refinement(ast, value, "From", decoded.failure))
    return Option.match(ast.filter(decoded.success, {}, ast), {
      onNone: () => decoded,
      onSome: (issue) => Result.fail(new ParseResult.Refinement(ast, value, "Predicate", issue))
    })
  }
}

/** How values of a schema are judged: lists and plain objects in parts, whatever else there is in one go. */
const reader = (ast: AST.AST): Reader => {
  if (AST.isTupleType(ast) && ast.elements.length === 0 && ast.rest[0] !== undefined && ast.rest.length === 1)
    return elements(ast.rest[0].type, ast)
  if (AST.isTypeLiteral(ast) && ast.indexSignatures.length === 0 && ast.propertySignatures.length > 0)
    return members(ast.propertySignatures, ast)
  if (AST.isTypeLiteral(ast) && isOfAnyMembers(ast)) return anyMembers(ast)
  if (AST.isRefinement(ast)) return refinement(ast)
  return whole(ast)
}

/**
 * Judges a value, excess members included, and stops now and then: the schema of a body of 1 MiB may have tens of
 * thousands of addresses to look at. It says what the schema's own decoder says when it names the first place alone.
 */
export const decoder = (schema: Schema.Top): Reader => reader(schema.ast)
