import * as JSONSchema from "effect/JsonSchema"
import * as Option from "effect/Option"
import * as AST from "effect/SchemaAST"

/** A JSON Schema of the 2020-12 dialect, as far as this project's schemas use it. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly enum?: ReadonlyArray<unknown>
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
}

/** Where named schemas stand in an OpenAPI document. */
export const root = "#/components/schemas/"

/** JSON Schemas of request and response schemas; the named ones are collected in `definitions`. */
export class JsonSchemas {
  readonly definitions: Record<string, JsonSchema> = {}
  private readonly described = new Set<string>()

  /** Of a request, in which unknown members are refused; an answer may grow members. */
  of(ast: AST.AST, side: "request" | "answer"): JsonSchema {
    const raw: Record<string, JSONSchema.JsonSchema7> = {}
    const schema = JSONSchema.fromAST(ast, {
      definitions: raw,
      definitionPath: root,
      target: "openApi3.1",
      additionalPropertiesStrategy: side === "request" ? "strict" : "allow"
    })
    for (const [name, definition] of Object.entries(raw)) this.definitions[name] ??= plain(definition)
    return this.describe(ast, plain(schema))
  }

  /** Effect leaves the description out where a schema brings a JSON Schema of its own. */
  private describe(ast: AST.AST, schema: JsonSchema): JsonSchema {
    const inner = withoutCodec(ast)
    const own = Option.isSome(AST.getJSONSchemaAnnotation(ast))
      ? Option.getOrNull(AST.getDescriptionAnnotation(ast))
      : null
    const missing = own !== null && !isBuiltIn(own) && schema.description === undefined
    const here = missing ? { ...schema, description: own } : schema
    // A named schema that is described where it is used stands alone in an `allOf`.
    const name = schema.$ref ?? schema.allOf?.[0]?.$ref
    if (name !== undefined) this.describeDefinition(inner, name.slice(root.length))
    if (AST.isTypeLiteral(inner) && here.properties !== undefined) {
      const types = new Map(inner.propertySignatures.map(({ name, type }) => [String(name), type]))
      const properties = Object.entries(here.properties).map(([name, property]) => {
        const type = types.get(name)
        return [name, type === undefined ? property : this.describe(type, property)]
      })
      return { ...here, properties: Object.fromEntries(properties) }
    }
    const element = AST.isTupleType(inner) ? inner.rest[0]?.type : undefined
    return element === undefined || here.items === undefined
      ? here
      : { ...here, items: this.describe(element, here.items) }
  }

  private describeDefinition(ast: AST.AST, name: string): void {
    const definition = this.definitions[name]
    if (definition === undefined || this.described.has(name)) return
    this.described.add(name)
    this.definitions[name] = this.describe(ast, definition)
  }
}

/** What is on the wire, under transformations and refinements; an optional member without its `undefined`. */
const withoutCodec = (ast: AST.AST): AST.AST => {
  if (AST.isTransformation(ast) || AST.isRefinement(ast)) return withoutCodec(ast.from)
  if (AST.isUnion(ast)) {
    const [only, ...others] = ast.types.filter((type) => !AST.isUndefinedKeyword(type))
    return only !== undefined && others.length === 0 ? withoutCodec(only) : ast
  }
  return ast
}

/**
 * Without `$id`, which effect writes several times with one value, though it must be unique; and without the titles
 * of its built-in schemas, which say nothing.
 */
const plain = (schema: JSONSchema.JsonSchema7): JsonSchema =>
  JSON.parse(JSON.stringify(schema, (key, value: unknown) => (isNoise(key, value) ? undefined : value)))

const isNoise = (key: string, value: unknown): boolean =>
  key === "$id" ||
  (typeof value === "string" && (key === "title" || (key === "description" && isBuiltIn(value))))

const isBuiltIn = (description: string): boolean =>
  description === "an integer" || description.startsWith("a number between")
