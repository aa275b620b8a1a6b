import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import type * as Effect from "effect/Effect"
import type { Caller } from "../../../application/request/Caller.js"
import type { Failure } from "../../../application/request/Failure.js"
import type * as Chain from "../contract/Chain.js"
import type * as Events from "../contract/Events.js"
import type * as Network from "../contract/Network.js"
import type * as Operations from "../contract/Operations.js"
import type * as Registry from "../contract/Registry.js"
import type * as Signing from "../contract/Signing.js"
import type * as Wallets from "../contract/Wallets.js"
import type * as Watches from "../contract/Watches.js"
import type * as Webhooks from "../contract/Webhooks.js"

/** What a part of a request adds; nothing when the endpoint has no such part. */
type Part<P> = [P] extends [never] ? Readonly<Record<never, never>> : P

type Request<E extends HttpApiEndpoint.HttpApiEndpoint.Any> = [
  HttpApiEndpoint.HttpApiEndpoint.Payload<E>
] extends [never]
  ? Part<HttpApiEndpoint.HttpApiEndpoint.PathParsed<E>> & Part<HttpApiEndpoint.HttpApiEndpoint.UrlParams<E>>
  : HttpApiEndpoint.HttpApiEndpoint.Payload<E> & Part<HttpApiEndpoint.HttpApiEndpoint.PathParsed<E>>

/** What a group of the contract needs: for each endpoint, by its name, the use case behind it. */
export type HandlersOf<Group extends HttpApiGroup.HttpApiGroup.Any, R> = {
  readonly [E in HttpApiGroup.HttpApiGroup.Endpoints<Group> as HttpApiEndpoint.HttpApiEndpoint.Name<E>]: (
    caller: Caller,
    request: Request<E>
  ) => Effect.Effect<HttpApiEndpoint.HttpApiEndpoint.Success<E>, Failure, R>
}

/** The use cases behind all endpoints that need a key. */
export type Handlers<R = unknown> = HandlersOf<typeof Wallets.group, R> &
  HandlersOf<typeof Operations.group, R> &
  HandlersOf<typeof Chain.group, R> &
  HandlersOf<typeof Events.group, R> &
  HandlersOf<typeof Registry.group, R> &
  HandlersOf<typeof Signing.group, R> &
  HandlersOf<typeof Network.group, R> &
  HandlersOf<typeof Webhooks.group, R> &
  HandlersOf<typeof Watches.group, R>
