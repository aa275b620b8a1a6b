import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { api } from "../contract/Api.js"
import * as OpenApi from "../docs/OpenApi.js"
import * as SwaggerUi from "../docs/SwaggerUi.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import { type Problem, problem, retryAfter } from "../message/ErrorEnvelope.js"
import * as Pages from "../message/Pages.js"

/** Whether the operator's node of a chain has answered the last poll; `unknown`: it was not asked yet. */
export type Node = "up" | "down" | "unknown"

export interface Parts {
  readonly inFlight: InFlightLimit
  readonly ready: Effect.Effect<boolean>
  /** By decimal chain id. */
  readonly nodes: () => Readonly<Record<string, Node>>
  readonly basePath: string
}

const notReady = problem("unavailable", [{ path: "", message: "the database does not answer" }], {
  headers: retryAfter(1)
})

const stopping = problem("shutting_down", [], { headers: retryAfter(5) })

export const make = ({
  basePath,
  inFlight,
  nodes,
  ready
}: Parts): Readonly<Record<string, Effect.Effect<unknown, Problem>>> => {
  let document: HttpServerResponse.HttpServerResponse | undefined
  return {
    live: Effect.succeed({ status: "live" }),
    ready: Effect.suspend(() =>
      inFlight.stopping
        ? Effect.fail(stopping)
        : Effect.flatMap(ready, (isReady) =>
            isReady ? Effect.succeed({ status: "ready", nodes: nodes() }) : Effect.fail(notReady)
          )
    ),
    openapi: Effect.sync(() => {
      document ??= HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api, basePath))
      return document
    }),
    docs: Effect.sync(() => Pages.answer(SwaggerUi.page))
  }
}
