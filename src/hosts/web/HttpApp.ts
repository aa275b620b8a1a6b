import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import type * as Scope from "effect/Scope"
import type { RateLimit } from "../../application/ports/RateLimit.js"
import type { Tenants } from "../../application/ports/Tenants.js"
import { Lifetime } from "../../application/runtime/Lifetime.js"
import { Submissions } from "../../application/usecases/operations/Submissions.js"
import * as Groups from "../http/handlers/Groups.js"
import * as HttpService from "../http/service/HttpService.js"

export interface Options extends Omit<HttpService.Options, "lastCall" | "room"> {
  /** How long a stop waits for the requests under way. Default 25 seconds. */
  readonly drain?: Duration.Input
}

/**
 * The interface as a handler of `HttpRouter`, over the ports around it: `Castellan.layer` has all of them but `Tenants`, which says
 * who holds which API key. It answers until the scope closes, and 503 from then on.
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
