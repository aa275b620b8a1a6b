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

/** With what is said of a schema where it is used beside it, and without the bounds of doubles. */
const plain = (schema: OpenApiSchema.JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (_, value: unknown) => {
    if (value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER) return undefined
    if (typeof value !== "object" || value === null || !("allOf" in value) || !Array.isArray(value.allOf))
      return value
    const { allOf, ...rest } = value
    const more = allOf.filter((one) => !Object.keys(one).every((key) => said.has(key)))
    const beside = Object.assign({}, rest, ...allOf.filter((one) => !more.includes(one)))
    if (more.length === 0) return beside
    return more.length === 1 && "$ref" in more[0] ? { ...more[0], ...beside } : { ...beside, allOf: more }
  })

const said: ReadonlySet<string> = new Set(["description", "default"])
