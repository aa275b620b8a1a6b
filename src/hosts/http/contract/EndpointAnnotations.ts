import * as Context from "effect/Context"
import { identity } from "effect/Function"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import type * as Schema from "effect/Schema"
import type { Scope } from "../../../application/ports/Tenants.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"

/** Header with the account's key. */
export const apiKeyHeader = "X-API-Key"

/** Marks endpoints that require an account's key. */
export class Authentication extends HttpApiMiddleware.Service<Authentication>()("castellan/Authentication", {
  security: {
    apiKey: HttpApiSecurity.apiKey({ in: "header", key: apiKeyHeader }).pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "The account's key, issued by the operator. Keep it secret."
      )
    )
  },
  error: [
    ErrorEnvelope.schemas[400],
    ErrorEnvelope.schemas[401],
    ErrorEnvelope.schemas[422],
    ErrorEnvelope.schemas[429],
    ErrorEnvelope.schemas[500],
    ErrorEnvelope.schemas[503]
  ]
}) {}

/** Exempts an endpoint from keys and rate limits: its callers decide whether the process lives. */
export class Unlimited extends Context.Service<Unlimited, true>()("castellan/Unlimited") {}

/** Scope that the key needs; without this annotation any key's scope suffices. */
export class RequiredScope extends Context.Service<RequiredScope, Scope>()("castellan/RequiredScope") {}

/** The endpoint takes a request without any body as `{}`. */
export class BodyOptional extends Context.Service<BodyOptional, true>()("castellan/BodyOptional") {}

/** The endpoint writes: it takes the headers Idempotency-Key and Request-Metadata. */
export class Idempotent extends Context.Service<Idempotent, true>()("castellan/Idempotent") {}

/** The endpoint replaces one version by the next: it takes the header If-Match. */
export class Versioned extends Context.Service<Versioned, true>()("castellan/Versioned") {}

/** The header If-Match (RFC 9110) with the version that a change replaces. */
export const ifMatchHeader = "If-Match"

/** Bounds of the endpoint's body in place of the service's. */
export class BodyBounds extends Context.Service<
  BodyBounds,
  { readonly maxBytes: number; readonly longest?: { readonly name: string; readonly maxElements: number } }
>()("castellan/BodyBounds") {}

/** Names the list of operations that may be long when the caller does not wait for the outcome. */
export class LongList extends Context.Service<LongList, string>()("castellan/LongList") {}

/** Header that makes retries of a write one request. */
export const idempotencyHeader = "Idempotency-Key"

/** Header with the caller's metadata of a write, for later searches. */
export const metadataHeader = "Request-Metadata"

/** The response is a stream of events, resumable after any event. */
export class Streamed extends Context.Service<Streamed, true>()("castellan/Streamed") {}

/** Header with the last event that a resuming client received (HTML standard). */
export const lastEventHeader = "Last-Event-ID"

/** Header with which a caller asks for a response on acceptance of a write (RFC 7240). */
export const preferHeader = "Prefer"

/** A request for the documentation: body, or parameters of path and query. It decodes under the endpoint's schema. */
export class Example extends Context.Service<Example, unknown>()("castellan/Example") {}

/** Documentation of an endpoint: one line, full text and an example request. */
export const describe = (summary: string, description: string, example?: unknown) =>
  Context.make(OpenApi.Summary, summary).pipe(
    Context.add(OpenApi.Description, description),
    example === undefined ? identity : Context.add(Example, example)
  )

interface UseCase<Request, Response> {
  readonly Request: Request
  readonly Response: Response
}

interface About {
  readonly summary: string
  readonly description: string
  readonly example: unknown
}

/** The endpoint of a use case, at the path of its name. */
export const post = <const Name extends string, Request extends Schema.Top, Response extends Schema.Top>(
  name: Name,
  scope: Scope,
  { Request, Response }: UseCase<Request, Response>,
  { description, example, summary }: About
) =>
  HttpApiEndpoint.post(name, `/${name}`, { payload: Request, success: Response, disableCodecs: true })
    .annotate(RequiredScope, scope)
    .annotateMerge(describe(summary, description, example))

/** The endpoint of a use case that writes. */
export const write = <const Name extends string, Request extends Schema.Top, Response extends Schema.Top>(
  name: Name,
  useCase: UseCase<Request, Response>,
  about: About
) => post(name, "write", useCase, about).annotate(Idempotent, true)
