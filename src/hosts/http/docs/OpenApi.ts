import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Annotation from "effect/http-api/OpenApi"
import * as Option from "effect/Option"
import type * as AST from "effect/SchemaAST"
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
  Streamed,
  TextAnswer
} from "../contract/EndpointAnnotations.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import * as Statuses from "../message/Statuses.js"
import * as Guide from "./Guide.js"
import { JsonSchemas } from "./JsonSchemas.js"
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

/** An example has the parameters of the path beside the members of the body. */
const bodyOf = (example: unknown, path: string): unknown => {
  const named = [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => name)
  return named.length === 0
    ? example
    : Object.fromEntries(Object.entries(Object(example)).filter(([name]) => !named.includes(name)))
}

type Reflected = Parameters<Parameters<typeof HttpApi.reflect>[1]["onEndpoint"]>[0]

const operationOf = (
  schemas: JsonSchemas,
  { endpoint, errors, group, mergedAnnotations, middleware }: Reflected
): Operation => {
  const text = textOf(endpoint.annotations)
  const withKey = [...middleware].some(({ key }) => key === Authentication.key)
  const scope = Option.getOrNull(Context.getOption(mergedAnnotations, RequiredScope))
  const [payload] = endpoint.payload.values()
  const [success = HttpApiSchema.NoContent] = endpoint.success
  const example = Option.getOrUndefined(Context.getOption(endpoint.annotations, Example))
  const streams = Option.isSome(Context.getOption(mergedAnnotations, Streamed))
  const isWrite = Option.isSome(Context.getOption(mergedAnnotations, Idempotent))
  const parameters = [
    ...parametersOf(schemas, "path", endpoint.params?.ast, example),
    ...parametersOf(schemas, "query", endpoint.query?.ast, example),
    ...(isWrite
      ? [idempotencyHeader, metadataHeader, preferHeader].map((name) => ({
          $ref: `#/components/parameters/${name}`
        }))
      : []),
    ...(streams ? [{ $ref: `#/components/parameters/${lastEventHeader}` }] : [])
  ]
  return {
    operationId: endpoint.identifier,
    tags: [group.identifier],
    summary: text(Annotation.Summary),
    description: [text(Annotation.Description), scope === null ? "" : `Scope of the key: ${scope}.`]
      .filter((part) => part !== "")
      .join(" "),
    security: withKey ? [{ apiKey: [] }] : [],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(payload === undefined
      ? {}
      : {
          requestBody: {
            required: Option.isNone(Context.getOption(mergedAnnotations, BodyOptional)),
            content: {
              "application/json": {
                schema: schemas.of(payload.schemas[0].ast, "request"),
                ...(example === undefined ? {} : { example: bodyOf(example, endpoint.path) })
              }
            }
          }
        }),
    responses: {
      "200": {
        description: "Success",
        headers: withKey ? counted : headerRefs("X-Request-Id"),
        content: {
          [Option.getOrElse(Context.getOption(mergedAnnotations, TextAnswer), () => "application/json")]: {
            schema: schemas.of(success.ast, "answer")
          }
        }
      },
      ...(streams ? { "204": nothingMore } : {}),
      ...(isWrite ? { "202": { $ref: "#/components/responses/Accepted" } } : {}),
      ...Object.fromEntries(
        statuses
          .filter((status) => errors.has(status))
          .map((status) => [String(status), { $ref: `#/components/responses/${Statuses.names[status]}` }])
      )
    }
  }
}

/** The contract as an OpenAPI 3.1 document, of a service that stands under the path. What is not served yet is not in it. */
export const fromApi = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  basePath = ""
): Document => {
  const schemas = new JsonSchemas()
  const tags: Array<Document["tags"][number]> = []
  const paths: Record<string, Record<string, Operation>> = {}
  const failures = Object.fromEntries(
    statuses.map((status) => [
      Statuses.names[status],
      {
        description: describeFailure(status),
        headers: errorHeaders(status),
        content: { "application/json": { schema: schemas.of(ErrorEnvelope.schemas[status].ast, "answer") } }
      }
    ])
  )
  HttpApi.reflect(api, {
    onGroup: ({ group }) => {
      tags.push({
        name: group.identifier,
        description: textOf(group.annotations)(Annotation.Description)
      })
    },
    onEndpoint: (reflected) => {
      const { method, path } = reflected.endpoint
      const template = templateOf(path)
      paths[template] = { ...paths[template], [method.toLowerCase()]: operationOf(schemas, reflected) }
    }
  })
  const info = textOf(api.annotations)
  return {
    openapi: "3.1.0",
    info: {
      title: info(Annotation.Title),
      version: info(Annotation.Version),
      summary: info(Annotation.Description),
      description: Guide.chapters.map(Guide.markdown).join("\n"),
      license: { name: "MIT", identifier: "MIT" }
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    tags,
    paths,
    components: {
      schemas: schemas.definitions,
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

/** The parameters of a path or a query, each with its value in the endpoint's example. */
const parametersOf = (
  schemas: JsonSchemas,
  place: "path" | "query",
  ast: AST.AST | undefined,
  example: unknown
): ReadonlyArray<Parameter> => {
  const { properties = {}, required = [] } = ast === undefined ? {} : schemas.of(ast, "request")
  const values = new Map(Object.entries(Object(example)))
  return Object.entries(properties).map(([name, { description = "", ...schema }]) => ({
    name,
    in: place,
    required: required.includes(name),
    description,
    schema,
    ...(values.has(name) ? { example: values.get(name) } : {})
  }))
}

const textOf =
  (annotations: Context.Context<never>) =>
  <T>(tag: Context.Key<T, string>): string =>
    Option.getOrElse(Context.getOption(annotations, tag), () => "")

const describeFailure = (status: (typeof statuses)[number]): string =>
  Statuses.codesOf(status)
    .map((code) => `\`${code}\`: ${catalogue[code].when}`)
    .join("\n")
