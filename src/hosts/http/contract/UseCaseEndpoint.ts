import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as Schema from "effect/Schema"
import type { Scope } from "../../../application/ports/Tenants.js"
import { Idempotent, RequiredScope, said } from "./EndpointAnnotations.js"

/** A use case that is asked by a body. */
interface UseCase<Request, Response> {
  readonly Request: Request
  readonly Response: Response
}

/** What the documentation says of it, see `said`. */
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
    .annotateMerge(said(summary, description, example))

/** The endpoint of a use case that writes. */
export const write = <const Name extends string, Request extends Schema.Top, Response extends Schema.Top>(
  name: Name,
  useCase: UseCase<Request, Response>,
  about: About
) => post(name, "write", useCase, about).annotate(Idempotent, true)
