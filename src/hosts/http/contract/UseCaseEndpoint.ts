import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
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
export const post = <
  const Name extends string,
  Request extends Schema.Schema.Any,
  Response extends Schema.Schema.Any
>(
  name: Name,
  scope: Scope,
  { Request, Response }: UseCase<Request, Response>,
  { description, example, summary }: About
) =>
  HttpApiEndpoint.post(name, `/${name}`)
    .setPayload(Request)
    .addSuccess(Response)
    .annotate(RequiredScope, scope)
    .annotateContext(said(summary, description, example))

/** The endpoint of a use case that writes. */
export const write = <
  const Name extends string,
  Request extends Schema.Schema.Any,
  Response extends Schema.Schema.Any
>(
  name: Name,
  useCase: UseCase<Request, Response>,
  about: About
) => post(name, "write", useCase, about).annotate(Idempotent, true)
