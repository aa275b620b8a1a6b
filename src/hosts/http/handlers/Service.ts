import * as Effect from "effect/Effect"
import { api } from "../contract/Api.js"
import * as OpenApi from "../docs/OpenApi.js"
import * as SwaggerUi from "../docs/SwaggerUi.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import { type Problem, problem, retryAfter } from "../message/ErrorEnvelope.js"

/** Made when it is first asked for, then kept. */
const once = <A>(make: () => A): Effect.Effect<A> => {
  let made: { readonly value: A } | null = null
  return Effect.sync(() => {
    made ??= { value: make() }
    return made.value
  })
}

const notReady = problem("unavailable", [{ path: "", message: "the database does not answer" }], {
  headers: retryAfter(1)
})

/** The endpoints that need no key, by name. */
export const handlers = (
  inFlight: InFlightLimit,
  isReady: Effect.Effect<boolean>,
  basePath: string
): Readonly<Record<string, Effect.Effect<unknown, Problem>>> => {
  const document = once(() => OpenApi.fromApi(api, basePath))
  return {
    live: Effect.succeed({ status: "live" }),
    ready: Effect.suspend(() =>
      inFlight.stopping
        ? Effect.fail(problem("shutting_down", [], { headers: retryAfter(5) }))
        : Effect.flatMap(isReady, (ready) =>
            ready ? Effect.succeed({ status: "ready" }) : Effect.fail(notReady)
          )
    ),
    openapi: document,
    docs: Effect.succeed(SwaggerUi.page)
  }
}

/** Headers of their own, by endpoint. */
export const headers: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  docs: { "content-security-policy": SwaggerUi.contentSecurityPolicy }
}
