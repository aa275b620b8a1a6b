import * as OpenApiSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
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

/** Annotations of wire schemas that are keywords of JSON Schema. */
const keywords: ReadonlySet<string> = new Set(["pattern", "minLength", "maxLength"])

/** JSON Schemas of request and response schemas; the named ones are collected in `definitions`. */
export class JsonSchemas {
  readonly definitions: Record<string, JsonSchema> = {}
  private readonly described = new Set<string>()

  /** Of a request, in which unknown members are refused; an answer may grow members. */
  of(ast: AST.AST, side: "request" | "answer"): JsonSchema {
    const { definitions, schemas } = OpenApiSchema.toMultiDocumentOpenApi3_1(
      SchemaRepresentation.toJsonSchemaMultiDocument(SchemaRepresentation.toRepresentations([ast]), {
        onExcessProperty: side === "request" ? "error" : "ignore",
        includeAnnotationKey: (key) => keywords.has(key)
      })
    )
    for (const [name, definition] of Object.entries(definitions)) this.definitions[name] ??= definition
    return this.describe(ast, schemas[0])
  }

  /** Effect describes what is on the wire, without what is said of it where a codec is used. */
  private describe(ast: AST.AST, schema: JsonSchema): JsonSchema {
    const inner = withoutCodec(ast)
    const own = Schema.resolveAnnotations(Schema.make(ast))?.description
    const here =
      own !== undefined && schema.description === undefined ? { ...schema, description: own } : schema
    // A named schema that is described where it is used stands alone in an `allOf`.
    const name = schema.$ref ?? schema.allOf?.[0]?.$ref
    if (name !== undefined) this.describeDefinition(inner, name.slice(root.length))
    if (AST.isObjects(inner) && here.properties !== undefined) {
      const types = new Map(inner.propertySignatures.map(({ name, type }) => [String(name), type]))
      const properties = Object.entries(here.properties).map(([name, property]) => {
        const type = types.get(name)
        return [name, type === undefined ? property : this.describe(type, property)]
      })
      return { ...here, properties: Object.fromEntries(properties) }
    }
    const element = AST.isArrays(inner) ? inner.rest[0] : undefined
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

/** What is on the wire. */
const withoutCodec = (ast: AST.AST): AST.AST => AST.toEncoded(ast)
