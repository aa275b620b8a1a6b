import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import { Submissions } from "../../application/endpoints/Submissions.js"
import type { RateLimit } from "../../application/ports/RateLimit.js"
import type { Tenants } from "../../application/ports/Tenants.js"
import { Lifetime } from "../../application/runtime/Lifetime.js"
import * as Groups from "../http/service/Groups.js"
import * as HttpService from "../http/service/HttpService.js"

export interface Options extends Omit<HttpService.Options, "lastCall" | "room"> {
  /** Time for requests in flight when stopping. Default 25 seconds. */
  readonly drain?: Duration.Input
}

/**
 * The HTTP API as a handler of `HttpRouter`, over the ports around it. `Castellan.layer` provides them all except
 * `Tenants`, which maps API keys to accounts. After the scope closes it responds with 503.
 */
export const httpApp = ({
  drain = "25 seconds",
  ...options
}: Options = {}): Effect.Effect<
  Effect.Effect<HttpServerResponse, never, HttpServerRequest>,
  never,
  HttpService.Requirements<typeof Groups.handlers> | Lifetime | RateLimit | Tenants | Scope.Scope
> =>
  Effect.gen(function* () {
    const { stopWaiting } = yield* Lifetime
    const { room } = yield* Submissions
    const service = yield* HttpService.make(Groups.handlers, { ...options, room, lastCall: stopWaiting })
    yield* Effect.addFinalizer(() => service.stop(drain))
    return service.app
  })
