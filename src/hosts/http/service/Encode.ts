import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as SchemaParser from "effect/SchemaParser"
import * as Json from "../../../domain/json/Json.js"
import type { Steps } from "../../../domain/primitives/Steps.js"
import * as Decode from "./Decode.js"

/** JSON text of a value, or the places where it does not fit its schema. */
type Written = Result.Result<string, string>

/** A value that is written in one go. */
type Whole = (value: unknown) => Written

/** A value that may hold any number of others. */
type Stepwise = (value: unknown) => Steps<Written>

type Writer =
  | { readonly kind: "whole"; readonly write: Whole }
  | { readonly kind: "stepwise"; readonly write: Stepwise }

const judged = (ast: AST.AST): Whole => {
  const encode = SchemaParser.encodeUnknownResult(Schema.make<unknown, unknown>(ast))
  return (value) => Result.mapBoth(encode(value), { onFailure: Decode.places, onSuccess: Json.print })
}

type Fits = (value: unknown) => boolean

/** Whether a value is its own encoded form, for schemas of which that is told by the value alone; null for others. */
const plain = (ast: AST.AST): Fits | null => {
  if (ast.annotations[AST.ParseOptionsAnnotationId] !== undefined) return null
  switch (ast._tag) {
    case "StringKeyword":
      return (value) => typeof value === "string"
    case "BooleanKeyword":
      return (value) => typeof value === "boolean"
    case "NumberKeyword":
      // JSON has no NaN and no infinity.
      return (value) => Number.isFinite(value)
    case "Literal": {
      const { literal } = ast
      return typeof literal === "bigint" ? null : (value) => value === literal
    }
    case "Union": {
      const all = ast.types.map(plain)
      return all.some((one) => one === null) ? null : (value) => all.some((one) => one?.(value) === true)
    }
    default:
      return null
  }
}

const single = (ast: AST.AST): Writer => {
  const fits = plain(ast)
  const judge = judged(ast)
  return {
    kind: "whole",
    write:
      fits === null ? judge : (value) => (fits(value) ? Result.succeed(JSON.stringify(value)) : judge(value))
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** What does not fit in a part, as the whole's own place: `logs[0].address: expected a string`. */
const within = (place: string, inside: string): Written =>
  Result.fail(place + (/^[:[]/.test(inside) ? "" : ".") + inside)

/** An array of any number of elements of one schema: each is written on its own. */
const elements = (element: AST.AST, all: AST.AST): Writer => {
  const writer = writerOf(element)
  const judge = judged(all)
  return {
    kind: "stepwise",
    write: function* (value) {
      if (!Array.isArray(value)) return judge(value)
      const texts: Array<string> = []
      for (const [index, one] of value.entries()) {
        const text = writer.kind === "whole" ? writer.write(one) : yield* writer.write(one)
        if (Result.isFailure(text)) return within(`[${index}]`, text.failure)
        texts.push(text.success)
        yield
      }
      return Result.succeed(`[${texts.join(",")}]`)
    }
  }
}

interface Member {
  readonly isOptional: boolean
  readonly name: string
  /** `"name":` */
  readonly label: string
  readonly writer: Writer
}

/** An object: each member is written on its own. */
const members = (properties: ReadonlyArray<AST.PropertySignature>, all: AST.AST): Writer => {
  const list = properties.map(
    ({ isOptional, name, type }): Member => ({
      isOptional,
      name: String(name),
      label: `${JSON.stringify(name)}:`,
      writer: writerOf(type)
    })
  )
  const judge = judged(all)
  const wholes = list.flatMap((member) =>
    member.writer.kind === "whole" ? [{ ...member, write: member.writer.write }] : []
  )
  return wholes.length === list.length
    ? { kind: "whole", write: (value) => (isObject(value) ? object(wholes, value) : judge(value)) }
    : { kind: "stepwise", write: (value) => objectSteps(list, judge, value) }
}

const object = (
  list: ReadonlyArray<Member & { readonly write: Whole }>,
  value: Readonly<Record<string, unknown>>
): Written => {
  let texts = ""
  for (const { isOptional, label, name, write } of list) {
    if (!Object.hasOwn(value, name)) {
      if (isOptional) continue
      return Result.fail(`${name}: is missing`)
    }
    const text = write(value[name])
    if (Result.isFailure(text)) return within(name, text.failure)
    texts += `${texts === "" ? "" : ","}${label}${text.success}`
  }
  return Result.succeed(`{${texts}}`)
}

function* objectSteps(list: ReadonlyArray<Member>, judge: Whole, value: unknown): Steps<Written> {
  if (!isObject(value)) return judge(value)
  const texts: Array<string> = []
  for (const { isOptional, label, name, writer } of list) {
    if (!Object.hasOwn(value, name)) {
      if (isOptional) continue
      return Result.fail(`${name}: is missing`)
    }
    const text = writer.kind === "whole" ? writer.write(value[name]) : yield* writer.write(value[name])
    if (Result.isFailure(text)) return within(name, text.failure)
    texts.push(label + text.success)
  }
  return Result.succeed(`{${texts.join(",")}}`)
}

/** How values of a schema are written: lists and plain objects in parts, whatever else there is in one go. */
const writerOf = (ast: AST.AST): Writer => {
  if (AST.isTupleType(ast) && ast.elements.length === 0 && ast.rest[0] !== undefined && ast.rest.length === 1)
    return elements(ast.rest[0].type, ast)
  if (AST.isTypeLiteral(ast) && ast.indexSignatures.length === 0 && ast.propertySignatures.length > 0)
    return members(ast.propertySignatures, ast)
  return single(ast)
}

/**
 * Writes successes as JSON, and stops now and then: they may hold thousands of logs. `Left`: it does not fit the
 * schema; the text names the places, without values.
 */
export const encoder = (schema: Schema.Top): Stepwise => {
  const writer = writerOf(schema.ast)
  if (writer.kind === "stepwise") return writer.write
  // biome-ignore lint/correctness/useYield: it is written in one go
  return function* (value) {
    return writer.write(value)
  }
}
