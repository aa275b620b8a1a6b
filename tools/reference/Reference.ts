import { catalogue, type Entry } from "../../src/application/failures/Catalogue.js"
import { reasons } from "../../src/application/failures/Reasons.js"
import * as Statuses from "../../src/hosts/http/message/Statuses.js"
import { type Document, type JsonSchema, type Operation, type Parameter, root } from "./OpenApiDocument.js"

/** A member of a request or a response, at any depth. */
export interface Field {
  /** For example `operations[].to`. */
  readonly path: string
  readonly type: string
  readonly required: boolean
  readonly description: string
}

export interface ExampleAnswer {
  readonly language: "json" | "text"
  readonly text: string
}

export interface Endpoint {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly parameters: ReadonlyArray<Parameter>
  /** Without the members of `settings`. */
  readonly request: ReadonlyArray<Field>
  /** The required ones among the members of `settings`. */
  readonly requiredSettings: ReadonlyArray<string>
  readonly answer: ReadonlyArray<Field>
  /** A shell command; null for a request without a body. */
  readonly example: string | null
  /** The service's response to the command; null when it was never sent. */
  readonly exampleAnswer: ExampleAnswer | null
}

/** A request to a real service and its response: JSON, or a stream's text. */
export interface Exchange {
  /** Absent: the request has no body. */
  readonly request?: unknown
  readonly answer: unknown
}

export interface Group {
  readonly name: string
  readonly description: string
  readonly endpoints: ReadonlyArray<Endpoint>
}

export interface Failures {
  readonly status: Statuses.Status
  /** `reasons`: further explanations of the code. */
  readonly codes: ReadonlyArray<Entry & { readonly code: string; readonly reasons: ReadonlyArray<string> }>
}

/** Content of the documentation pages, before layout, read from the OpenAPI document. */
export interface Reference {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly groups: ReadonlyArray<Group>
  /** Members of `settings`, as an endpoint takes them that requires few; each endpoint names the required ones. */
  readonly settings: ReadonlyArray<Field>
  /** Headers that many endpoints take. */
  readonly headers: ReadonlyArray<Parameter>
  readonly failures: ReadonlyArray<Failures>
}

const baseUrl = "http://127.0.0.1:8080"

/** `exchanges`: by endpoint name, for examples with a real response. */
export const fromDocument = (
  document: Document,
  exchanges: ReadonlyMap<string, Exchange> = new Map()
): Reference => ({
  title: document.info.title,
  version: document.info.version,
  description: document.info.summary,
  headers: Object.values(document.components.parameters),
  settings: Object.values(document.paths)
    .flatMap(Object.values)
    .filter(({ operationId }: Operation) => operationId === "estimateGas")
    .flatMap((operation: Operation) => requested(document, operation).filter(isSetting)),
  groups: document.tags
    .map(
      ({ description, name }): Group => ({
        name,
        description,
        endpoints: Object.entries(document.paths).flatMap(([path, methods]) =>
          Object.entries(methods)
            .filter(([, operation]) => operation.tags.includes(name))
            .map(([method, operation]) =>
              endpoint(document, path, method, operation, exchanges.get(operation.operationId))
            )
        )
      })
    )
    .flatMap(parted),
  failures: ([400, 401, 404, 405, 422, 429, 500, 503] as const).map((status) => ({
    status,
    codes: Statuses.codesOf(status).map((code) => ({
      code,
      ...catalogue[code],
      reasons: Object.values(reasons).flatMap((reason) => (reason.code === code ? [reason.text] : []))
    }))
  }))
})

/** Parts a group: endpoints that read and cancel writes have a separate page. */
const parted = (group: Group): ReadonlyArray<Group> => {
  const pages = Object.groupBy(group.endpoints, ({ path }) => {
    if (path.startsWith("/requests")) return "requests"
    return path.endsWith("asskey") || path.startsWith("/passkey") ? "passkeys" : "own"
  })
  const page = (name: string, description: string, endpoints: ReadonlyArray<Endpoint> = []) =>
    endpoints.length === 0 ? [] : [{ name, description, endpoints }]
  return [
    ...page(group.name, group.description, pages.own),
    ...page("passkeys", "Encode and execute ops that passkeys sign.", pages.passkeys),
    ...page("requests", "List, follow and cancel writes.", pages.requests)
  ]
}

const isSetting = ({ path }: Field): boolean => path.startsWith("settings.")

const requested = (document: Document, { requestBody }: Operation): ReadonlyArray<Field> => {
  const body = requestBody?.content["application/json"]
  return body === undefined ? [] : fields(document, body.schema)
}

const endpoint = (
  document: Document,
  path: string,
  method: string,
  operation: Operation,
  exchange: Exchange | undefined
): Endpoint => {
  const request = operation.requestBody?.content["application/json"]
  const asked = requested(document, operation)
  const success = operation.responses["200"]
  const answer = success !== undefined && "content" in success ? Object.values(success.content)[0] : undefined
  const parameters = (operation.parameters ?? []).flatMap((parameter) =>
    "$ref" in parameter
      ? (document.components.parameters[parameter.$ref.split("/").at(-1) ?? ""] ?? [])
      : [parameter]
  )
  return {
    name: operation.operationId,
    method: method.toUpperCase(),
    path,
    summary: operation.summary,
    description: operation.description,
    parameters,
    request: asked.filter((field) => !isSetting(field)),
    requiredSettings: asked.flatMap(({ path, required }) =>
      required && /^settings\.\w+$/.test(path) ? [path.slice("settings.".length)] : []
    ),
    answer: answer === undefined ? [] : fields(document, answer.schema),
    example:
      request === undefined
        ? null
        : example(method.toUpperCase(), filled(path, parameters), exchange?.request ?? request.example),
    exampleAnswer: exchange === undefined ? null : shown(exchange.answer)
  }
}

/** A path with its parameters' examples filled in. */
const filled = (path: string, parameters: ReadonlyArray<Parameter>): string =>
  parameters.reduce(
    (text, { example, name }) =>
      text.replace(`{${name}}`, encodeURIComponent(String(example)).replaceAll("%3A", ":")),
    path
  )

/** Members of an array in an example; a page says that others are left out. */
const mostMembers = 1

const cut = (_: string, value: unknown): unknown =>
  Array.isArray(value) && value.length > mostMembers && value.every((each) => typeof each === "object")
    ? value.slice(0, mostMembers)
    : value

/** The head of a stream, and its first and last event. */
const ends = (stream: string): string => {
  const [head = "", first = "", ...others] = stream.trimEnd().split("\n\n")
  return [head, first, ...others.slice(-1)].join("\n\n")
}

/** An answer as the reference shows it. */
export const shown = (answer: unknown): ExampleAnswer =>
  typeof answer === "string"
    ? { language: "text", text: ends(answer) }
    : { language: "json", text: json(JSON.parse(JSON.stringify(answer, cut))) }

/** Columns of an object or array that stays on one line. */
const width = 130

/** JSON whose lines are as full as the width permits. */
const json = (value: unknown, indent = ""): string => {
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  const isArray = Array.isArray(value)
  const members = (inner: string) =>
    Object.entries(value).map(
      ([name, member]) => `${isArray ? "" : `${JSON.stringify(name)}: `}${json(member, inner)}`
    )
  const [open, close] = isArray ? ["[", "]"] : ["{", "}"]
  const line = `${open}${members(indent).join(", ")}${close}`
  if (indent.length + line.length <= width && !line.includes("\n")) return line
  // The brackets of an only member that is an object share lines with its own.
  const [only, ...others] = Object.entries(value)
  if (only !== undefined && others.length === 0 && only[1] !== null && typeof only[1] === "object") {
    const [start, end] = isArray ? [open, close] : [`${open}${JSON.stringify(only[0])}: `, close]
    return `${start}${json(only[1], indent)}${end}`
  }
  const inner = `${indent}  `
  const lines: Array<string> = []
  for (const member of members(inner)) {
    const joined = `${lines.at(-1)}, ${member}`
    if (lines.length > 0 && !joined.includes("\n") && joined.length <= width) lines[lines.length - 1] = joined
    else lines.push(`${inner}${member}`)
  }
  return `${open}\n${lines.join(",\n")}\n${indent}${close}`
}

const example = (method: string, path: string, body: unknown): string =>
  [
    `curl ${baseUrl}${path}`,
    // Only parts that are not curl's defaults.
    ...(method === "POST" ? [] : [`-X ${method}`]),
    "-H 'X-API-Key: <API_KEY>' -H 'Content-Type: application/json'",
    `-d '${json(body)}'`
  ].join(" ")

const resolve = (document: Document, schema: JsonSchema): JsonSchema => {
  const ref = schema.$ref ?? schema.allOf?.[0]?.$ref
  const target = ref === undefined ? undefined : document.components.schemas[ref.slice(root.length)]
  return target === undefined ? schema : { ...resolve(document, target), ...described(schema) }
}

const described = ({ description }: JsonSchema): Pick<JsonSchema, "description"> =>
  description === undefined ? {} : { description }

/** The path to which the schema's objects are posted; undefined: none. */
const endpointOf = ({ paths }: Document, { $ref }: JsonSchema): string | undefined =>
  $ref === undefined
    ? undefined
    : Object.keys(paths).find(
        (path) => paths[path]?.post?.requestBody?.content["application/json"]?.schema.$ref === $ref
      )

/** Members of alternatives, those of one name and meaning together. */
const together = (all: ReadonlyArray<Field>): ReadonlyArray<Field> =>
  Object.values(Object.groupBy(all, ({ description, path }) => JSON.stringify([path, description]))).flatMap(
    (same = []) => {
      const type = [...new Set(same.map((each) => each.type))].join(" or ")
      return same.slice(0, 1).map((each) => ({ ...each, type }))
    }
  )

/** The members of a schema in order, each followed by its own members. Alternatives of a whole answer stand in sequence. */
const fields = (document: Document, schema: JsonSchema, path = ""): ReadonlyArray<Field> => {
  const here = resolve(document, schema)
  if (here.items !== undefined) return fields(document, here.items, `${path}[]`)
  if (path === "" && here.anyOf !== undefined)
    return together(here.anyOf.flatMap((one) => fields(document, one)))
  const named = Object.entries(here.properties ?? {}).flatMap(([name, property]) => {
    const at = path === "" ? name : `${path}.${name}`
    return [
      {
        path: at,
        type: typeName(document, property),
        required: here.required?.includes(name) ?? false,
        description: resolve(document, property).description ?? ""
      },
      ...(endpointOf(document, property) === undefined ? fields(document, property, at) : [])
    ]
  })
  return typeof here.additionalProperties === "object"
    ? [...named, ...fields(document, here.additionalProperties, `${path}.<index>`)]
    : named
}

const addressPattern = "^0x[0-9a-fA-F]{40}$"

/** A short type name; names of scalar schemas (Address, Uint256) stand for their rules. */
const typeName = (document: Document, schema: JsonSchema): string => {
  const { allOf, anyOf, enum: values, items, maximum, minimum, oneOf, pattern, type } = schema
  const ref = schema.$ref ?? allOf?.[0]?.$ref
  if (ref !== undefined) {
    const name = ref.slice(root.length)
    const endpoint = endpointOf(document, schema)
    if (endpoint !== undefined) return `body of ${endpoint}`
    return scalars.some(([scalar]) => scalar === name) ? name : typeName(document, resolve(document, schema))
  }
  const alternatives = anyOf ?? oneOf
  if (alternatives !== undefined)
    return [...new Set(alternatives.map((one) => typeName(document, one)))].join(" or ")
  if (items !== undefined) return `array of ${typeName(document, items)}`
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" or ")
  if (minimum !== undefined && maximum !== undefined) return `${type ?? "number"}, ${minimum} to ${maximum}`
  // An address with a description loses its name in JSON Schema.
  if (pattern === addressPattern) return "Address"
  if (type === "array") return "array of any"
  return type ?? "any"
}

/** Rules behind the names of scalar types. */
export const scalars: ReadonlyArray<readonly [name: string, rule: string]> = [
  [
    "Address",
    "0x and 40 hex digits; of mixed case only with the EIP-55 checksum. Answers always carry the checksum."
  ],
  ["Hex", "0x and an even number of hex digits."],
  ["Bytes32", "0x and 64 hex digits."],
  ["Uint256", "A string: a decimal integer without sign, or 0x and hex digits. Never a JSON number."],
  ["Percent", "A number or decimal string from 0 to 1000 with at most four decimals."],
  ["UnixSeconds", "An integer from 0 to 2^48 - 1; 0 means no bound."]
]
