import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { api } from "../contract/Api.js"
import * as OpenApi from "../docs/OpenApi.js"
import * as SwaggerUi from "../docs/SwaggerUi.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import { problem, retryAfter } from "../message/ErrorEnvelope.js"
import * as Pages from "../message/Pages.js"
import { refuse } from "./Exchange.js"

export interface Parts {
  readonly inFlight: InFlightLimit
  readonly ready: Effect.Effect<boolean>
  readonly basePath: string
}

const notReady = problem("unavailable", [{ path: "", message: "the database does not answer" }], {
  headers: retryAfter(1)
})

const stopping = problem("shutting_down", [], { headers: retryAfter(5) })

/** The endpoints that need no key. */
export const layer = ({ basePath, inFlight, ready }: Parts) =>
  HttpApiBuilder.group(api, "service", (handlers) => {
    let document: HttpServerResponse.HttpServerResponse | undefined
    return handlers.handleAll({
      live: () => Effect.succeed({ status: "live" as const }),
      ready: () =>
        Effect.gen(function* () {
          if (inFlight.stopping) return yield* refuse(stopping)
          return (yield* ready) ? { status: "ready" as const } : yield* refuse(notReady)
        }),
      openapi: () =>
        Effect.sync(() => {
          document ??= HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api, basePath))
          return document
        }),
      docs: () => Effect.sync(() => Pages.answer(SwaggerUi.page))
    })
  })
