import type * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type { Failure } from "../../../application/failures/Failure.js"
import type { Caller } from "../../../application/request/Caller.js"
import type { api } from "../contract/Api.js"
import * as Chain from "../contract/Chain.js"
import * as Events from "../contract/Events.js"
import * as Network from "../contract/Network.js"
import * as Operations from "../contract/Operations.js"
import * as Policies from "../contract/Policies.js"
import * as Registry from "../contract/Registry.js"
import type * as Service from "../contract/Service.js"
import * as Settings from "../contract/Settings.js"
import * as Signing from "../contract/Signing.js"
import * as Wallets from "../contract/Wallets.js"
import * as Watches from "../contract/Watches.js"
import * as Webhooks from "../contract/Webhooks.js"

/** A part of a request; empty when the endpoint lacks it. */
type Part<P> = [P] extends [never] ? Readonly<Record<never, never>> : P

type Request<E extends HttpApiEndpoint.ConstraintRequest> = [HttpApiEndpoint.Payload<E>["Type"]] extends [
  never
]
  ? Part<HttpApiEndpoint.Params<E>["Type"]> & Part<HttpApiEndpoint.Query<E>["Type"]>
  : HttpApiEndpoint.Payload<E>["Type"] & Part<HttpApiEndpoint.Params<E>["Type"]>

type Endpoint = HttpApiGroup.Endpoints<
  Exclude<(typeof api.groups)[keyof typeof api.groups], typeof Service.group>
>

/** The use cases of all endpoints that need a key, by endpoint name. */
export type Handlers<R = unknown> = {
  readonly [E in Endpoint as HttpApiEndpoint.Identifier<E>]: (
    caller: Caller,
    request: Request<E>
  ) => Effect.Effect<HttpApiEndpoint.Success<E>["Type"], Failure, R>
}

export const handlers = {
  ...Wallets.useCases,
  ...Operations.useCases,
  ...Chain.useCases,
  ...Events.useCases,
  ...Registry.useCases,
  ...Signing.useCases,
  ...Network.useCases,
  ...Webhooks.useCases,
  ...Watches.useCases,
  ...Policies.useCases,
  ...Settings.useCases
} satisfies Handlers
