import type * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type { Caller } from "../../../application/request/Caller.js"
import type { Failure } from "../../../application/request/Failure.js"
import type { api } from "../contract/Api.js"
import type * as Service from "../contract/Service.js"

/** What a part of a request adds; nothing when the endpoint has no such part. */
type Part<P> = [P] extends [never] ? Readonly<Record<never, never>> : P

type Request<E extends HttpApiEndpoint.ConstraintRequest> = [HttpApiEndpoint.Payload<E>["Type"]] extends [
  never
]
  ? Part<HttpApiEndpoint.Params<E>["Type"]> & Part<HttpApiEndpoint.Query<E>["Type"]>
  : HttpApiEndpoint.Payload<E>["Type"] & Part<HttpApiEndpoint.Params<E>["Type"]>

type Endpoint = HttpApiGroup.Endpoints<
  Exclude<(typeof api.groups)[keyof typeof api.groups], typeof Service.group>
>

/** The use cases behind all endpoints that need a key, by the endpoint's name. */
export type Handlers<R = unknown> = {
  readonly [E in Endpoint as HttpApiEndpoint.Identifier<E>]: (
    caller: Caller,
    request: Request<E>
  ) => Effect.Effect<HttpApiEndpoint.Success<E>["Type"], Failure, R>
}
