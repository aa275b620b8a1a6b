import * as OpenApiSchema from "effect/JsonSchema"
import type * as AST from "effect/SchemaAST"
import * as SchemaRepresentation from "effect/SchemaRepresentation"

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

  /** Of a request, in which unknown members are refused; an answer may grow members. */
  of(ast: AST.AST, side: "request" | "answer"): JsonSchema {
    const { definitions, schemas } = OpenApiSchema.toMultiDocumentOpenApi3_1(
      SchemaRepresentation.toJsonSchemaMultiDocument(SchemaRepresentation.toRepresentations([ast]), {
        onExcessProperty: side === "request" ? "error" : "ignore"
      })
    )
    for (const [name, definition] of Object.entries(definitions)) this.definitions[name] ??= plain(definition)
    return plain(schemas[0])
  }
}

/** Without the bounds of doubles, and without lists of one; what is said of a schema where it is used stands beside it. */
const plain = (schema: OpenApiSchema.JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (_, value: unknown) => {
    if (value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER) return undefined
    if (!isSchema(value)) return value
    const { allOf = [], anyOf = [], ...rest } = value
    const [only, ...others] = allOf.filter((one) => !isSaid(one))
    const said = Object.assign(rest, ...allOf.filter(isSaid))
    return {
      ...(others.length > 0 ? { allOf: [only, ...others] } : only),
      ...(anyOf.length > 1 ? { anyOf } : anyOf[0]),
      ...said
    }
  })

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && ("allOf" in value || "anyOf" in value)

const isSaid = (schema: JsonSchema): boolean =>
  Object.keys(schema).every((key) => key === "description" || key === "default")
