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

/** Without the bounds of doubles, and without lists of one; what is said of a schema where it is used stands beside it. */
export const plain = <A>(document: object): A =>
  JSON.parse(JSON.stringify(document), (_, value: unknown) => {
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

type Schemas = Readonly<Record<string, JsonSchema>>

/** Names of schemas that a value refers to, itself or by others. */
const named = (value: unknown, schemas: Schemas, names = new Set<string>()): ReadonlySet<string> => {
  for (const [, name = ""] of JSON.stringify(value ?? null).matchAll(
    /"\$ref":"#\/components\/schemas\/([^"]+)"/g
  ))
    if (!names.has(name)) named(schemas[name], schemas, names.add(name))
  return names
}

/** In requests unknown members are refused; an answer may grow members. */
export const open = (schemas: Schemas, requests: unknown): Schemas => {
  const refused = named(requests, schemas)
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, refused.has(name) ? schema : opened(schema)])
  )
}

const opened = (schema: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "additionalProperties" && value === false ? true : value
  )

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && ("allOf" in value || "anyOf" in value)

const isSaid = (schema: JsonSchema): boolean =>
  Object.keys(schema).every((key) => key === "description" || key === "default")
