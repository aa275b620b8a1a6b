import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Generated from "effect/http-api/OpenApi"
import * as Metadata from "../../../application/endpoints/operations/Metadata.js"
import { catalogue } from "../../../application/failures/Catalogue.js"
import * as Contract from "../contract/EndpointAnnotations.js"
import * as Statuses from "../message/Statuses.js"
import * as Guide from "./Guide.js"

const headers = {
  "X-Request-Id": { description: "Name of the request in the service's log.", schema: { type: "string" } },
  "RateLimit-Limit": { description: "Requests of the window that binds first.", schema: { type: "integer" } },
  "RateLimit-Remaining": { description: "Requests left in that window.", schema: { type: "integer" } },
  "RateLimit-Reset": { description: "Seconds until the next window begins.", schema: { type: "integer" } },
  "Retry-After": { description: "Seconds after which to try again.", schema: { type: "integer" } },
  Location: { description: "Path of the request's state and answer.", schema: { type: "string" } },
  "Preference-Applied": { description: "The preference that was followed.", schema: { type: "string" } }
}

const headerRefs = (...names: ReadonlyArray<keyof typeof headers>) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const counted = headerRefs("X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")

const errorHeaders = (status: number) => {
  if (status === 429) return { ...counted, ...headerRefs("Retry-After") }
  return status === 503 ? headerRefs("X-Request-Id", "Retry-After") : headerRefs("X-Request-Id")
}

const requestHeader = (name: string, example: string, description: string, pattern?: string) => ({
  name,
  in: "header",
  required: false,
  description,
  schema: { type: "string", ...(pattern !== undefined && { pattern }) },
  example
})

const { bytes, key, members, value } = Metadata.most

const requestHeaders = [
  requestHeader(
    Contract.idempotencyHeader,
    "order-4711",
    "Makes this request and every repeat of it, by the same account with the same bytes as body, one request with one outcome. 1 to 255 visible ASCII characters.",
    "^[!-~]{1,255}$"
  ),
  requestHeader(
    Contract.metadataHeader,
    '{"order":"4711","customer":"c-17"}',
    `What you want to find the request by: a JSON object of strings in ASCII (other characters as \\uXXXX), of at most ${members} members and ${bytes.toLocaleString("en")} bytes. Keys have 1 to ${key} of A-Z a-z 0-9 _ . -, values 1 to ${value} characters. It is not encrypted at rest: no secrets. A repeat with the same Idempotency-Key does not change it.`,
    `^[ -~]{2,${bytes}}$`
  ),
  requestHeader(
    Contract.preferHeader,
    "respond-async",
    "respond-async: the answer is 202 as soon as the request is accepted. A refusal before that is answered as ever, and so is a repeat of a request that is final. Other preferences are not looked at."
  ),
  requestHeader(
    Contract.ifMatchHeader,
    '"7"',
    // No pattern: generators of SDKs put one with quotes into their own strings.
    "The version in double quotes that the change replaces, 0 for none: version_mismatch unless it is the current one."
  ),
  requestHeader(
    Contract.lastEventHeader,
    "2",
    "The id of the last known event; the stream continues after it.",
    "^(?:0|[1-9][0-9]{0,8})$"
  )
]

/** The response to a write whose caller does not wait for its outcome. */
const accepted = {
  description: "Accepted, with Prefer: respond-async. The Location returns the request's state and answer.",
  headers: { ...counted, ...headerRefs("Location", "Preference-Applied") },
  content: {
    "application/json": {
      schema: {
        type: "object",
        required: ["requestId", "state"],
        properties: { requestId: { type: "string" }, state: { type: "string", enum: ["pending"] } },
        additionalProperties: false
      }
    }
  }
}

const failures = Object.fromEntries(
  ([400, 401, 404, 422, 429, 500, 503] as const).map((status) => {
    const name = Statuses.names[status]
    const codes = Statuses.codesOf(status).map((code) => `\`${code}\`: ${catalogue[code].when}`)
    const schema = { $ref: `#/components/schemas/${name}` }
    return [
      name,
      {
        description: codes.join("\n"),
        headers: errorHeaders(status),
        content: { "application/json": { schema } }
      }
    ]
  })
)

export const templateOf = (path: string): string => path.replace(/:([A-Za-z]+)/g, "{$1}")

type Reflected = Parameters<Parameters<typeof HttpApi.reflect>[1]["onEndpoint"]>[0]

/** Adds to the generated operation what schemas cannot express. */
const complete = (
  { parameters, requestBody, responses, ...operation }: Generated.OpenAPISpecOperation,
  { endpoint, errors, mergedAnnotations, middleware }: Reflected
) => {
  const annotation = <T, A>(tag: Context.Key<T, A>): A | undefined =>
    Context.getOrUndefined(mergedAnnotations, tag)
  const withKey = [...middleware].some(({ key }) => key === Contract.Authentication.key)
  const scope = annotation(Contract.RequiredScope)
  const example = annotation(Contract.Example)
  const values = Object.entries(Object(example))
  const { idempotencyHeader, ifMatchHeader, lastEventHeader, metadataHeader, preferHeader } = Contract
  const named = [
    ...(annotation(Contract.Idempotent) === true ? [idempotencyHeader, metadataHeader, preferHeader] : []),
    ...(annotation(Contract.Versioned) === true ? [ifMatchHeader] : []),
    ...(annotation(Contract.Streamed) === true ? [lastEventHeader] : [])
  ]
  const all = [
    ...parameters.map(({ schema, ...parameter }) => {
      const { description = "", ...shape } = schema as { readonly description?: string }
      const value = values.find(([name]) => name === parameter.name)
      return { ...parameter, description, schema: shape, ...(value && { example: value[1] }) }
    }),
    ...named.map((name) => ({ $ref: `#/components/parameters/${name}` }))
  ]
  // An example holds the path's parameters next to the body's members.
  const body = Object.fromEntries(values.filter(([name]) => !endpoint.path.includes(`:${name}`)))
  const media = requestBody?.content["application/json"]
  return {
    ...operation,
    operationId: endpoint.identifier,
    description: `${operation.description}${scope === undefined ? "" : ` Scope of the key: ${scope}.`}`,
    ...(all.length > 0 && { parameters: all }),
    ...(media !== undefined && {
      requestBody: {
        required: annotation(Contract.BodyOptional) !== true,
        content: { "application/json": { ...media, ...(example !== undefined && { example: body }) } }
      }
    }),
    responses: {
      "200": {
        ...responses[200],
        description: "Success",
        headers: withKey ? counted : headerRefs("X-Request-Id")
      },
      ...(annotation(Contract.Streamed) === true && {
        "204": { description: "No more events will come.", headers: counted, content: {} }
      }),
      ...(annotation(Contract.Idempotent) === true && { "202": { $ref: "#/components/responses/Accepted" } }),
      ...Object.fromEntries(
        [...errors.keys()].map((status) => [
          status,
          { $ref: `#/components/responses/${Statuses.names[status as Statuses.Status]}` }
        ])
      )
    }
  }
}

/** The contract as an OpenAPI 3.1 document of a service at `basePath`. */
export const fromApi = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  basePath = ""
) => {
  const { components, info, paths, tags } = plain(Generated.fromApi(api))
  const completedPaths: Record<string, Record<string, ReturnType<typeof complete>>> = {}
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: (reflected) => {
      const method = reflected.endpoint.method.toLowerCase() as Generated.OpenAPISpecMethodName
      const path = templateOf(reflected.endpoint.path)
      const operation = paths[path]?.[method]
      if (operation === undefined) throw new Error(`${method} ${path} is not in the document`)
      completedPaths[path] = { ...completedPaths[path], [method]: complete(operation, reflected) }
    }
  })
  return {
    openapi: "3.1.0",
    info: { ...info, description: Guide.chapters.map(Guide.markdown).join("\n") },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    tags,
    paths: completedPaths,
    components: {
      schemas: leaveOpen(components.schemas, completedPaths),
      responses: { Accepted: accepted, ...failures },
      parameters: Object.fromEntries(requestHeaders.map((header) => [header.name, header])),
      headers,
      securitySchemes: components.securitySchemes
    }
  }
}

interface Combined {
  readonly allOf?: ReadonlyArray<object>
  readonly anyOf?: ReadonlyArray<object>
}

/** Drops the bounds of doubles, unwraps one-element lists, and merges descriptions and defaults into the schema. */
const plain = <A>(document: A): A =>
  JSON.parse(JSON.stringify(document), (_, value: unknown) => {
    if (value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER) return undefined
    if (typeof value !== "object" || value === null || !("allOf" in value || "anyOf" in value)) return value
    const { allOf = [], anyOf = [], ...rest } = value as Combined
    const [only, ...others] = allOf.filter((one) => !isSaid(one))
    return {
      ...(others.length > 0 ? { allOf: [only, ...others] } : only),
      ...(anyOf.length > 1 ? { anyOf } : anyOf[0]),
      ...Object.assign(rest, ...allOf.filter(isSaid))
    }
  })

const isSaid = (schema: object): boolean =>
  Object.keys(schema).every((key) => key === "description" || key === "default")

type Schemas = Readonly<Record<string, unknown>>

/** Names of the schemas that a value refers to, directly or indirectly. */
const namesIn = (value: unknown, schemas: Schemas, names = new Set<string>()): ReadonlySet<string> => {
  for (const [, name = ""] of JSON.stringify(value ?? null).matchAll(
    /"\$ref":"#\/components\/schemas\/([^"]+)"/g
  ))
    if (!names.has(name)) namesIn(schemas[name], schemas, names.add(name))
  return names
}

/** Responses may gain members; requests refuse unknown ones. */
const leaveOpen = (
  schemas: Schemas,
  paths: Readonly<Record<string, Readonly<Record<string, { readonly requestBody?: unknown }>>>>
): Schemas => {
  const bodies = Object.values(paths).flatMap((path) => Object.values(path).map((one) => one.requestBody))
  const opened: Schemas = JSON.parse(JSON.stringify(schemas), (key, value: unknown) =>
    key === "additionalProperties" && value === false ? true : value
  )
  const refused = [...namesIn(bodies, schemas)].map((name) => [name, schemas[name]])
  return { ...opened, ...Object.fromEntries(refused) }
}
