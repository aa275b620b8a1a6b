import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Generated from "effect/http-api/OpenApi"
import { catalogue } from "../../../application/request/Catalogue.js"
import * as Metadata from "../../../application/request/Metadata.js"
import {
  Authentication,
  apiKeyHeader,
  BodyOptional,
  Example,
  Idempotent,
  idempotencyHeader,
  lastEventHeader,
  metadataHeader,
  preferHeader,
  RequiredScope,
  Streamed
} from "../contract/EndpointAnnotations.js"
import * as Statuses from "../message/Statuses.js"
import * as Guide from "./Guide.js"
import * as JsonSchemas from "./JsonSchemas.js"
import type { Document, Operation, Parameter, Reference, Response } from "./OpenApiDocument.js"

/** Headers of answers, by the name of their component. */
const headers = {
  "X-Request-Id": { description: "Name of the request in the service's log.", schema: { type: "string" } },
  "RateLimit-Limit": { description: "Requests of the window that binds first.", schema: { type: "integer" } },
  "RateLimit-Remaining": { description: "Requests left in that window.", schema: { type: "integer" } },
  "RateLimit-Reset": { description: "Seconds until that window begins anew.", schema: { type: "integer" } },
  "Retry-After": { description: "Seconds after which to try again.", schema: { type: "integer" } },
  Location: { description: "Path that tells what became of the request.", schema: { type: "string" } },
  "Preference-Applied": { description: "The preference that was followed.", schema: { type: "string" } }
} as const

const headerRefs = (...names: ReadonlyArray<keyof typeof headers>): Record<string, Reference> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const counted = headerRefs("X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")

const errorHeaders = (status: number): Record<string, Reference> => {
  if (status === 429) return { ...counted, ...headerRefs("Retry-After") }
  return status === 503 ? headerRefs("X-Request-Id", "Retry-After") : headerRefs("X-Request-Id")
}

/** The statuses of failures. */
const statuses = [400, 401, 404, 422, 429, 500, 503] as const

const idempotencyKey: Parameter = {
  name: idempotencyHeader,
  in: "header",
  required: false,
  description:
    "Makes this request and every repeat of it, by the same account with the same bytes as body, one request with one outcome. 1 to 255 visible ASCII characters.",
  schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  example: "order-4711"
}

const metadata: Parameter = {
  name: metadataHeader,
  in: "header",
  required: false,
  description: `What you want to find the request by: a JSON object of strings in ASCII (other characters as \\uXXXX), of at most ${Metadata.most.members} members and ${Metadata.most.bytes.toLocaleString("en")} bytes. Keys have 1 to ${Metadata.most.key} of A-Z a-z 0-9 _ . -, values 1 to ${Metadata.most.value} characters. It is not encrypted at rest: no secrets. A repeat with the same Idempotency-Key does not change it.`,
  schema: { type: "string", pattern: `^[ -~]{2,${Metadata.most.bytes}}$` },
  example: '{"order":"4711","customer":"c-17"}'
}

const prefer: Parameter = {
  name: preferHeader,
  in: "header",
  required: false,
  description:
    "respond-async: the answer is 202 as soon as the request is accepted. A refusal before that is answered as ever, and so is a repeat of a request that is final. Other preferences are not looked at.",
  schema: { type: "string" },
  example: "respond-async"
}

/** The answer to a write whose caller does not wait for its outcome. */
const accepted: Response = {
  description: "Accepted, with Prefer: respond-async. GET the Location for what became of it.",
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

const lastEvent: Parameter = {
  name: lastEventHeader,
  in: "header",
  required: false,
  description: "The id of the last event that is known: the stream goes on after it.",
  schema: { type: "string", pattern: "^(?:0|[1-9][0-9]{0,8})$" },
  example: "2"
}

/** The answer to a stream that is resumed behind its end. */
const nothingMore: Response = {
  description: "No more events will come.",
  headers: counted,
  content: {}
}

/** A path as OpenAPI writes it. */
export const templateOf = (path: string): string => path.replace(/:([A-Za-z]+)/g, "{$1}")

type Reflected = Parameters<Parameters<typeof HttpApi.reflect>[1]["onEndpoint"]>[0]

/** The operation as it follows from the schemas, with what they do not tell. */
const completed = (
  { parameters: stated = [], requestBody, responses, ...operation }: Operation,
  { endpoint, errors, mergedAnnotations, middleware }: Reflected
): Operation => {
  const said = <T, A>(tag: Context.Key<T, A>): A | undefined => Context.getOrUndefined(mergedAnnotations, tag)
  const withKey = [...middleware].some(({ key }) => key === Authentication.key)
  const scope = said(RequiredScope)
  const values = new Map(Object.entries(Object(said(Example))))
  const parameters = [
    ...stated.map((parameter) => described(parameter as Parameter, values)),
    ...(said(Idempotent) === undefined ? [] : [idempotencyHeader, metadataHeader, preferHeader].map(header)),
    ...(said(Streamed) === undefined ? [] : [header(lastEventHeader)])
  ]
  // An example has the parameters of the path beside the members of the body.
  const body = Object.fromEntries([...values].filter(([name]) => !endpoint.path.includes(`:${name}`)))
  const schema = requestBody?.content["application/json"]?.schema
  const success = responses["200"] as Response
  return {
    ...operation,
    operationId: endpoint.identifier,
    description: `${operation.description}${scope === undefined ? "" : ` Scope of the key: ${scope}.`}`,
    security: withKey ? [{ apiKey: [] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(schema !== undefined && {
      requestBody: {
        required: said(BodyOptional) === undefined,
        content: {
          "application/json": { schema, ...(said(Example) !== undefined && { example: body }) }
        }
      }
    }),
    responses: {
      "200": {
        ...success,
        description: "Success",
        headers: withKey ? counted : headerRefs("X-Request-Id")
      },
      ...(said(Streamed) !== undefined && { "204": nothingMore }),
      ...(said(Idempotent) !== undefined && { "202": { $ref: "#/components/responses/Accepted" } }),
      ...Object.fromEntries(
        statuses
          .filter((status) => errors.has(status))
          .map((status) => [String(status), { $ref: `#/components/responses/${Statuses.names[status]}` }])
      )
    }
  }
}

const header = (name: string): Reference => ({ $ref: `#/components/parameters/${name}` })

/** A parameter of a path or a query, with its value in the endpoint's example. */
const described = (
  { schema: { description = "", ...schema }, ...parameter }: Parameter,
  values: ReadonlyMap<string, unknown>
): Parameter => ({
  ...parameter,
  description,
  schema,
  ...(values.has(parameter.name) && { example: values.get(parameter.name) })
})

/** The contract as an OpenAPI 3.1 document, of a service that stands under the path. */
export const fromApi = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  basePath = ""
): Document => {
  const { components, info, paths, tags } = JsonSchemas.plain<Document>(Generated.fromApi(api))
  const failures = Object.fromEntries(
    statuses.map((status) => [
      Statuses.names[status],
      {
        description: describeFailure(status),
        headers: errorHeaders(status),
        content: { "application/json": { schema: { $ref: `${JsonSchemas.root}${Statuses.names[status]}` } } }
      }
    ])
  )
  const completedPaths: Record<string, Record<string, Operation>> = {}
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: (reflected) => {
      const method = reflected.endpoint.method.toLowerCase()
      const path = templateOf(reflected.endpoint.path)
      const operation = paths[path]?.[method]
      if (operation === undefined) throw new Error(`${method} ${path} is not in the document`)
      completedPaths[path] = { ...completedPaths[path], [method]: completed(operation, reflected) }
    }
  })
  const bodies = Object.values(paths).flatMap((path) =>
    Object.values(path).map(({ requestBody }) => requestBody)
  )
  return {
    openapi: "3.1.0",
    info: {
      title: info.title,
      version: info.version,
      summary: info.description,
      description: Guide.chapters.map(Guide.markdown).join("\n"),
      license: { name: "MIT", identifier: "MIT" }
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    tags,
    paths: completedPaths,
    components: {
      schemas: JsonSchemas.open(components.schemas, bodies),
      responses: { Accepted: accepted, ...failures },
      parameters: {
        [idempotencyHeader]: idempotencyKey,
        [metadataHeader]: metadata,
        [preferHeader]: prefer,
        [lastEventHeader]: lastEvent
      },
      headers,
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          in: "header",
          name: apiKeyHeader,
          description: "The account's key, issued by the operator. Keep it secret."
        }
      }
    }
  }
}

const describeFailure = (status: (typeof statuses)[number]): string =>
  Statuses.codesOf(status)
    .map((code) => `\`${code}\`: ${catalogue[code].when}`)
    .join("\n")
