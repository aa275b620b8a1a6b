/**
 * The service's OpenAPI 3.1 document in the subset of 3.0 that generators of clients turn into usable types.
 *
 * Gotchas: a union becomes any value. A write's answer has the members of both its 200 and its 202.
 */

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json }
type JsonObject = { readonly [name: string]: Json }

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const objectAt = (value: Json | undefined, ...path: ReadonlyArray<string>): JsonObject =>
  path.reduce<JsonObject>((at, name) => at[name] as JsonObject, value as JsonObject)

const isNull = (schema: Json): boolean => isObject(schema) && schema.type === "null"

const withoutUnion = ({ anyOf, oneOf, ...rest }: JsonObject): JsonObject => {
  const all = (anyOf ?? oneOf ?? []) as ReadonlyArray<Json>
  const members = all.filter((member) => !isNull(member))
  return {
    ...rest,
    ...(members.length === 1 && (members[0] as JsonObject)),
    ...(members.length < all.length && { nullable: true })
  }
}

/** Generators name the constants of numbers `_1` or mistype them. */
const withoutNumbers = ({ enum: values, ...rest }: JsonObject): JsonObject =>
  Array.isArray(values) && values.every((value) => Number.isInteger(value))
    ? { ...rest, type: "integer" }
    : { ...rest, ...(values !== undefined && { enum: values }) }

const schema = (given: JsonObject): JsonObject => {
  const { exclusiveMinimum, additionalProperties, ...rest } = withoutNumbers(withoutUnion(given))
  return {
    ...rest,
    ...(typeof exclusiveMinimum === "number" && { minimum: exclusiveMinimum, exclusiveMinimum: true }),
    ...(isObject(additionalProperties) && { additionalProperties }),
    ...(rest.type === "array" && rest.items === undefined && { items: {} }),
    ...(rest.type === "integer" && { format: "int64" })
  }
}

const convert = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(convert)
  if (!isObject(value)) return value
  return schema(Object.fromEntries(Object.entries(value).map(([name, member]) => [name, convert(member)])))
}

const nameOf = (reference: Json | undefined): string => String(reference).replace(/^.*\//, "")

/** A list of unnamed objects as a list of a named schema; generators return untyped maps otherwise. */
const namedItems = ([name, list]: readonly [string, Json]): ReadonlyArray<readonly [string, Json]> => {
  const { items } = list as JsonObject
  if (!isObject(items) || items.properties === undefined) return [[name, list]]
  const item = name.replace(/Response$/, "Result")
  return [
    [name, { ...(list as JsonObject), items: { $ref: `#/components/schemas/${item}` } }],
    [item, items]
  ]
}

/** Names of the schemas with which writes answer. */
const written = (paths: JsonObject): ReadonlySet<string> =>
  new Set(
    Object.values(paths)
      .flatMap((path) => Object.values(path as JsonObject))
      .map((operation) => objectAt(operation, "responses"))
      .filter((responses) => responses["202"] !== undefined)
      .map((responses) => nameOf(objectAt(responses["200"], "content", "application/json", "schema").$ref))
  )

export const forGenerators = (document: object): JsonObject => {
  const {
    components,
    info,
    openapi: _,
    ...rest
  } = convert(JSON.parse(JSON.stringify(document))) as {
    readonly [name: string]: JsonObject
  }
  const accepted = objectAt(components, "responses", "Accepted", "content", "application/json", "schema")
  const writes = written(objectAt(rest.paths))
  const named = Object.entries(objectAt(components, "schemas")).flatMap(namedItems)
  const schemas = named.map(([name, one]) => {
    if (!writes.has(name)) return [name, one]
    const { required: __, properties, ...result } = one as JsonObject
    return [name, { ...result, properties: { ...objectAt(properties), ...objectAt(accepted, "properties") } }]
  })
  return {
    openapi: "3.0.3",
    ...rest,
    info: {
      title: objectAt(info).title ?? "",
      version: objectAt(info).version ?? "",
      description: objectAt(info).summary ?? ""
    },
    components: { ...objectAt(components), schemas: Object.fromEntries(schemas) }
  }
}
