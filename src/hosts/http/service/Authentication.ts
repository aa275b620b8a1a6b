import * as Effect from "effect/Effect"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { RateLimit } from "../../../application/ports/RateLimit.js"
import { Tenants } from "../../../application/ports/Tenants.js"
import { Authentication, idempotencyHeader, metadataHeader } from "../contract/EndpointAnnotations.js"
import type { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { Exchange, refuse } from "../message/Exchange.js"
import * as Access from "./Access.js"
import type { Endpoint, Endpoints } from "./Endpoints.js"
import * as Payload from "./Payload.js"

export interface Parts {
  readonly endpoints: Endpoints
  readonly inFlight: InFlightLimit
  readonly anonymous: AnonymousRateLimit
}

/** In this order: a place among the requests under way, the key, the account's limits, what the endpoint does not take. */
export const layer = ({
  anonymous,
  endpoints,
  inFlight
}: Parts): Layer.Layer<Authentication, never, Tenants | RateLimit> =>
  Layer.effect(
    Authentication,
    Effect.gen(function* () {
      const tenants = yield* Tenants
      const limiter = yield* RateLimit
      const admit = (key: string, endpoint: Endpoint) =>
        Effect.withFiber<void, Problem, HttpServerRequest>((fiber) =>
          Effect.flatMap(Exchange, (known) => {
            const ticket = inFlight.enter(fiber)
            if (typeof ticket === "string")
              return Effect.fail(problem(ticket, [], { headers: ErrorEnvelope.retryAfter(1) }))
            known.ticket = ticket
            return Effect.flatMap(Access.authenticate(tenants, key), (principal) => {
              anonymous.recognise(key)
              known.anonymousAddress = null
              known.principal = principal
              return Effect.flatMap(Access.count(limiter, principal), (allowance) => {
                known.headers = Access.headers(allowance)
                const refusal = Access.refusal(principal, allowance, endpoint.scope)
                if (refusal !== null) return Effect.fail(refusal)
                return Effect.flatMap(HttpServerRequest, (request) => {
                  const unsupported = unsupportedBy(endpoint, request)
                  return unsupported === null ? Effect.void : Effect.fail(unsupported)
                })
              })
            })
          })
        )
      return {
        apiKey: (handler, { credential, endpoint }) =>
          Effect.matchEffect(admit(Redacted.value(credential), endpoints.named(endpoint.identifier)), {
            onFailure: refuse,
            onSuccess: () => handler
          })
      }
    })
  )

/** 1 to 255 visible ASCII characters (decisions, 9). */
const keyShape = /^[\x21-\x7e]{1,255}$/

/** What the endpoint does not take, though it may look as if it did: it is refused, never ignored. */
const unsupportedBy = (endpoint: Endpoint, request: HttpServerRequest): Problem | null => {
  const { headers, url } = request
  const key = headers[idempotencyHeader.toLowerCase()]
  if (key !== undefined) {
    const refused = (message: string) => problem("invalid_request", [{ path: idempotencyHeader, message }])
    if (!endpoint.idempotent) return refused("the endpoint takes no idempotency key; leave the header out")
    if (!keyShape.test(key)) return refused("expected 1 to 255 visible ASCII characters")
  }
  if (headers[metadataHeader.toLowerCase()] !== undefined && !endpoint.idempotent)
    return problem("invalid_request", [
      { path: metadataHeader, message: "the endpoint takes no metadata; leave the header out" }
    ])
  if (endpoint.query === null && url.includes("?")) {
    const instead = endpoint.decode === null ? "" : "; send a JSON body"
    return problem("unknown_field", [{ path: "", message: `the endpoint takes no query${instead}` }])
  }
  if (endpoint.decode === null && Payload.isKnownToFollow(request)) return Payload.noneTaken
  return null
}
