export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json }
type JsonObject = { readonly [name: string]: Json }

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isArray = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

const annotations = new Set(["$defs", "$schema", "default", "description", "example", "examples", "title"])

const typeOf = (value: Json): ReadonlyArray<string> => {
  if (value === null) return ["null"]
  if (isArray(value)) return ["array"]
  if (Number.isInteger(value)) return ["integer", "number"]
  return [typeof value]
}

/** What a JSON pointer with a leading # leads to. */
export const resolve = (document: Json, pointer: string): Json => {
  const found = pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<Json | undefined>((at, name) => (isObject(at) ? at[name] : undefined), document)
  if (found === undefined) throw new Error(`${pointer} leads nowhere`)
  return found
}

/**
 * How a value breaks a JSON schema (2020-12) of a document; empty when it holds. A keyword that this does not know is
 * an error, so that nothing passes unchecked.
 */
export const violations = (
  document: Json,
  schema: Json | undefined,
  value: Json,
  at = "$"
): ReadonlyArray<string> => {
  if (schema === true || schema === undefined) return []
  if (!isObject(schema)) return [`${at}: nothing is allowed`]
  const under = (inner: Json | undefined, path = at, of = value) => violations(document, inner, of, path)
  const members = isObject(value) ? value : {}
  const known = isObject(schema.properties) ? schema.properties : {}
  const check = (keyword: string, rule: Json): ReadonlyArray<string> => {
    const broken = [`${at}: ${JSON.stringify(value)?.slice(0, 80)} breaks ${keyword} ${JSON.stringify(rule)}`]
    const unless = (holds: boolean) => (holds ? [] : broken)
    const branches = isArray(rule) ? rule : []
    const fitting = () => branches.filter((branch) => under(branch).length === 0).length
    switch (keyword) {
      case "$ref":
        return under(resolve(document, String(rule)))
      case "type":
        return unless((isArray(rule) ? rule : [rule]).some((name) => typeOf(value).includes(String(name))))
      case "const":
        return unless(JSON.stringify(value) === JSON.stringify(rule))
      case "enum":
        return unless(branches.some((one) => JSON.stringify(one) === JSON.stringify(value)))
      case "allOf":
        return branches.flatMap((branch) => under(branch))
      case "anyOf":
        return unless(fitting() > 0)
      case "oneOf":
        return unless(fitting() === 1)
      case "required":
        return isObject(value) ? unless(branches.every((name) => String(name) in value)) : []
      case "properties":
        return Object.entries(known).flatMap(([name, inner]) => {
          const member = members[name]
          return member === undefined ? [] : under(inner, `${at}.${name}`, member)
        })
      case "additionalProperties":
        return Object.entries(members).flatMap(([name, member]) =>
          name in known ? [] : under(rule, `${at}.${name}`, member)
        )
      case "items":
        return isArray(value) ? value.flatMap((item, n) => under(rule, `${at}[${n}]`, item)) : []
      case "minItems":
        return unless(!isArray(value) || value.length >= Number(rule))
      case "maxItems":
        return unless(!isArray(value) || value.length <= Number(rule))
      case "pattern":
        return unless(typeof value !== "string" || new RegExp(String(rule), "u").test(value))
      case "minLength":
        return unless(typeof value !== "string" || [...value].length >= Number(rule))
      case "maxLength":
        return unless(typeof value !== "string" || [...value].length <= Number(rule))
      case "minimum":
        return unless(typeof value !== "number" || value >= Number(rule))
      case "maximum":
        return unless(typeof value !== "number" || value <= Number(rule))
      default:
        if (annotations.has(keyword)) return []
        throw new Error(`${at}: unknown keyword ${keyword}`)
    }
  }
  return Object.entries(schema).flatMap(([keyword, rule]) => check(keyword, rule))
}
