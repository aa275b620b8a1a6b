import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import { type Code, catalogue } from "../../../application/failures/Catalogue.js"
import type { Detail, Failure } from "../../../application/failures/Failure.js"
import { optional } from "../../../application/request/Fields.js"
import * as Json from "../../../domain/json/Json.js"
import * as Statuses from "./Statuses.js"

/** An error response. The code's kind decides the HTTP status. */
export interface Problem {
  readonly code: Code
  readonly message: string
  readonly details: ReadonlyArray<Detail>
  readonly extra: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
}

/** Shared by problems without extra response fields. */
const noExtra: Problem["extra"] = {}

export const problem = (
  code: Code,
  details: ReadonlyArray<Detail> = [],
  options: { readonly message?: string; readonly headers?: Readonly<Record<string, string>> } = {}
): Problem => ({
  code,
  message: options.message ?? catalogue[code].text,
  details,
  extra: noExtra,
  headers: options.headers ?? {}
})

export const fromFailure = (failure: Failure): Problem => ({
  code: failure.code,
  message: failure.message,
  details: failure.details,
  extra: "extra" in failure ? failure.extra : noExtra,
  headers: "retryAfterSeconds" in failure ? retryAfter(failure.retryAfterSeconds) : {}
})

/** The Retry-After header, from seconds. */
export const retryAfter = (seconds: number): Readonly<Record<string, string>> => ({
  "retry-after": String(Math.max(1, Math.ceil(seconds)))
})

/** The members after the first four, with a leading comma. */
const more = (extra: Problem["extra"]): string => {
  if (extra === noExtra) return ""
  const { error: _, code: __, requestId: ___, details: ____, ...rest } = extra
  const text = Json.print(rest)
  return text === "{}" ? "" : `,${text.slice(1, -1)}`
}

export interface Answer {
  readonly status: Statuses.Status
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export const answer = ({ code, details, extra, headers, message }: Problem, requestId: string): Answer => {
  const status = Statuses.of(code)
  // For a repeat, the id of the accepted request: the caller asks for that one.
  const accepted = code === "outcome_unknown" ? extra.requestId : undefined
  const id = typeof accepted === "string" ? accepted : requestId
  return {
    status,
    headers: {
      "content-type": "application/json",
      "x-request-id": requestId,
      ...(status === 401 ? { "www-authenticate": 'ApiKey realm="castellan"' } : {}),
      ...headers
    },
    body: `{"error":${JSON.stringify(message)},"code":"${code}","requestId":${JSON.stringify(id)},"details":${details.length === 0 ? "[]" : Json.print(details)}${more(extra)}}`
  }
}

export const response = (problem: Problem, requestId: string): HttpServerResponse.HttpServerResponse => {
  const { body, headers, status } = answer(problem, requestId)
  return HttpServerResponse.text(body, { status, headers, contentType: "application/json" })
}

const detail = Schema.StructWithRest(
  Schema.Struct({
    path: Schema.String.annotate({ description: "Where, for example operations[0].to; empty: the body." }),
    message: Schema.String.annotate({ description: "The problem." })
  }),
  [Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null]))]
).annotate({ identifier: "ErrorDetail" })

const members = (status: Statuses.Status) => ({
  error: Schema.String.annotate({ description: "The text of the failure." }),
  code: Schema.Literals([...Statuses.codesOf(status)]).annotate({
    description: "Stable machine-readable name."
  }),
  requestId: Schema.String.annotate({ description: "Also in the header X-Request-Id." }),
  details: Schema.Array(detail)
})

const envelope = (status: Statuses.Status) =>
  Schema.Struct(members(status)).annotate({ identifier: Statuses.names[status], httpApiStatus: status })

/** The envelope in the contract, by status. */
export const schemas = {
  400: envelope(400),
  401: envelope(401),
  404: envelope(404),
  422: Schema.Struct({
    ...members(422),
    txHash: optional(Schema.String).annotate({
      description: "With outcome_unknown: the transaction that was sent; empty when none is known yet."
    }),
    returnData: optional(Schema.Array(Schema.Unknown)).annotate({
      description: "With a refused write: why, for each element of the request."
    })
  }).annotate({ identifier: Statuses.names[422], httpApiStatus: 422 }),
  429: envelope(429),
  500: envelope(500),
  503: envelope(503)
}
