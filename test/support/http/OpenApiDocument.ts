import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import { catalogue } from "../../../src/application/failures/Catalogue.js"
import * as SwaggerUi from "../../../src/hosts/http/docs/SwaggerUi.js"
import * as Playground from "../../../src/hosts/http/playground/Playground.js"
import * as OpenApiDocument from "../../../tools/reference/OpenApiDocument.js"

/** One request and its answer, as they went over the wire. */
export interface Exchange {
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** Null if unknown: the body was a stream. */
  readonly sent: string | null
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export const { document } = OpenApiDocument

const ajv = new Ajv2020({
  strict: true,
  strictTypes: false,
  strictRequired: false,
  allErrors: true,
  strictNumbers: false
})
// Only the document's schemas are JSON schemas.
ajv.addSchema({ $id: "openapi", components: document.components } as object, "openapi", false, false)
ajv.addVocabulary(["components", "example"])

/** Schemas refer to each other from the root of the document. */
const absolute = (schema: unknown): object =>
  JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"openapi#/'))

const compiled = new WeakMap<object, ValidateFunction>()

/** Violations of a schema of the document; empty if the value fits. */
export const violations = (schema: object, value: unknown): ReadonlyArray<string> => {
  const validate = compiled.get(schema) ?? ajv.compile(absolute(schema))
  compiled.set(schema, validate)
  if (validate(value)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`
  )
}

const places = Object.entries(document.paths).map(([template, operations]) => ({
  shape: new RegExp(`^${template.replace(/\{[^}]+\}/g, "[^/]+")}$`),
  operations
}))

const parsed = (text: string): { readonly value: unknown } | null => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return null
  }
}

/** Response to paths and methods outside the document. */
const refusal = {
  type: "object",
  required: ["error", "code", "requestId", "details"],
  properties: {
    error: { type: "string", minLength: 1 },
    code: { enum: Object.keys(catalogue) },
    requestId: { type: "string" },
    details: { type: "array" }
  }
}

/** Codes of refusals whose text varies by case. */
const worded = new Set(["invalid_request"])

/** A refusal's text must begin with its catalogue entry; errors of single ops use the chain's words. */
const misworded = (status: number, body: unknown): ReadonlyArray<string> => {
  const { code, error } = Object(body)
  if (status === 200 || status === 422 || worded.has(code)) return []
  const { text } = Object(new Map<string, object>(Object.entries(catalogue)).get(code))
  return String(error).startsWith(text)
    ? []
    : [`${status}: the text of ${code} is not the catalogue's: ${error}`]
}

const answerViolations = (
  { headers, status, text }: Exchange,
  response: OpenApiDocument.Response
): ReadonlyArray<string> => {
  if (headers.get("x-request-id") === null) return ["no X-Request-Id"]
  if ("Retry-After" in (response.headers ?? {}) && headers.get("retry-after") === null)
    return ["no Retry-After"]
  const type = headers.get("content-type") ?? ""
  if (text === "" && Object.keys(response.content).length === 0) return []
  const media = response.content[type]
  if (media === undefined) return [`content type ${type} is not in the document`]
  const value = type === "application/json" ? parsed(text) : { value: text }
  if (value === null) return ["the body is not JSON"]
  return [
    ...violations(media.schema, value.value).map((broken) => `${status}: ${broken}`),
    ...misworded(status, value.value)
  ]
}

const resolve = (
  response: OpenApiDocument.Response | OpenApiDocument.Reference
): OpenApiDocument.Response | undefined =>
  "$ref" in response ? document.components.responses[response.$ref.split("/").at(-1) ?? ""] : response

interface Detail {
  readonly path: string
  readonly message: string
}

/** The document describes the content of these members only in prose. */
const anything = /components|useABI/

const requestViolations = (
  { sent, status, text }: Exchange,
  operation: OpenApiDocument.Operation
): ReadonlyArray<string> => {
  const schema = operation.requestBody?.content["application/json"]?.schema
  if (schema === undefined || sent === null) return []
  if (sent === "" && operation.requestBody?.required === false) return []
  const value = parsed(sent)
  const broken = value === null ? ["the body is not JSON"] : violations(schema, value.value)
  if (status === 200 || status === 422)
    return broken.map((each) => `${status} to an invalid request: ${each}`)
  // A body with an unknown field must not fit the document either.
  const details: ReadonlyArray<Detail> = Object(parsed(text)?.value).details ?? []
  const unknown = details.some(
    ({ message, path }) => message.startsWith("unknown field") && !anything.test(path)
  )
  return unknown && broken.length === 0 ? ["an unknown field in a request that fits the document"] : []
}

/** Differences between an exchange and the document. */
export const untruths = (exchange: Exchange): ReadonlyArray<string> => {
  const { method, status, target, text } = exchange
  const where = (broken: string) => `${method} ${target} ${broken}`
  const path = target.replace(/\?.*$/s, "")
  const operations = document.paths[path] ?? places.find(({ shape }) => shape.test(path))?.operations
  const operation = operations?.[(method === "HEAD" ? "get" : method).toLowerCase()]
  if (operation === undefined) {
    // Preflights belong to the browser and have no operation.
    if (method === "OPTIONS" && status === 200) return []
    // The document excludes the playground and the files that the documentation page loads.
    if ((Playground.pages.has(path) || SwaggerUi.pages.has(path)) && [200, 405].includes(status)) return []
    if (![400, 401, 404, 405, 429, 503].includes(status)) return [where(`${status}, and no such operation`)]
    return method === "HEAD" ? [] : violations(refusal, parsed(text)?.value).map(where)
  }
  const described = operation.responses[String(status)]
  const response = described === undefined ? undefined : resolve(described)
  if (response === undefined) return [where(`${status} is not in the document`)]
  const answer = method === "HEAD" ? [] : answerViolations(exchange, response)
  return [...answer, ...requestViolations(exchange, operation)].map(where)
}
