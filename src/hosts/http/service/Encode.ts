import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Json from "../../../domain/json/Json.js"
import type { Steps } from "../../../domain/primitives/Steps.js"
import * as Decode from "./Decode.js"

/** JSON text of a value, or the places where it does not fit its schema. */
type Written = Either.Either<string, string>

type Writer = (value: unknown) => Steps<Written>

/** A value that is written in one go. */
const whole = (ast: AST.AST): Writer => {
  const encode = ParseResult.encodeUnknownEither(Schema.make<unknown, unknown>(ast))
  // biome-ignore lint/correctness/useYield: it is written in one go
  return function* (value) {
    return Either.mapBoth(encode(value), { onLeft: Decode.places, onRight: Json.print })
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What does not fit in a part, as the whole's own place: `logs[0].address: expected a string`. */
const within = (place: string, inside: string): Written =>
  Either.left(place + (/^[:[]/.test(inside) ? "" : ".") + inside)

/** An array of any number of elements of one schema: each is written on its own. */
const elements = (element: AST.AST, all: AST.AST): Writer => {
  const write = writer(element)
  const judge = whole(all)
  return function* (value) {
    if (!Array.isArray(value)) return yield* judge(value)
    const texts: Array<string> = []
    for (const [index, one] of value.entries()) {
      const text = yield* write(one)
      if (Either.isLeft(text)) return within(`[${index}]`, text.left)
      texts.push(text.right)
      yield
    }
    return Either.right(`[${texts.join(",")}]`)
  }
}

/** An object: each member is written on its own. */
const members = (properties: ReadonlyArray<AST.PropertySignature>, all: AST.AST): Writer => {
  const writers = properties.map(({ isOptional, name, type }) => ({
    isOptional,
    name: String(name),
    write: writer(type)
  }))
  const judge = whole(all)
  return function* (value) {
    if (!isObject(value)) return yield* judge(value)
    const texts: Array<string> = []
    for (const { isOptional, name, write } of writers) {
      if (!Object.hasOwn(value, name)) {
        if (isOptional) continue
        return Either.left(`${name}: is missing`)
      }
      const text = yield* write(value[name])
      if (Either.isLeft(text)) return within(name, text.left)
      texts.push(`${JSON.stringify(name)}:${text.right}`)
    }
    return Either.right(`{${texts.join(",")}}`)
  }
}

/** How values of a schema are written: lists and plain objects in parts, whatever else there is in one go. */
const writer = (ast: AST.AST): Writer => {
  if (AST.isTupleType(ast) && ast.elements.length === 0 && ast.rest[0] !== undefined && ast.rest.length === 1)
    return elements(ast.rest[0].type, ast)
  if (AST.isTypeLiteral(ast) && ast.indexSignatures.length === 0 && ast.propertySignatures.length > 0)
    return members(ast.propertySignatures, ast)
  return whole(ast)
}

/**
 * Writes successes as JSON, and stops now and then: they may hold thousands of logs. `Left`: it does not fit the
 * schema; the text names the places, without values.
 */
export const encoder = (schema: Schema.Schema.All): Writer => writer(schema.ast)
