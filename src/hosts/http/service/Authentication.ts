import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Troubles from "../../../application/observe/Troubles.js"
import { type Allowance, limitsOf, RateLimit } from "../../../application/ports/RateLimit.js"
import { type Principal, type Scope, Tenants } from "../../../application/ports/Tenants.js"
import {
  Authentication,
  apiKeyHeader,
  idempotencyHeader,
  metadataHeader
} from "../contract/EndpointAnnotations.js"
import type { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Endpoint, Endpoints } from "./Endpoints.js"
import { Exchange, refuse } from "./Exchange.js"
import * as Payload from "./Payload.js"

/** Longest header that can be a key. */
const maxKeyLength = 512

/** A store that does not answer: nobody gets in, and nobody but the log is told why. */
const available = <A>(
  effect: Effect.Effect<A, { readonly message: string }>,
  place: "keys" | "windows"
): Effect.Effect<A, Problem> =>
  Effect.flatMap(Troubles.Shared, (troubles) => {
    const trouble = { what: "requests can not be let in", place }
    return Effect.matchEffect(effect, {
      onFailure: ({ message }) =>
        Effect.andThen(
          troubles.failed(trouble, Cause.fail(message)),
          Effect.fail(problem("unavailable", [], { headers: ErrorEnvelope.retryAfter(1) }))
        ),
      onSuccess: (value) => Effect.as(troubles.passed(trouble), value)
    })
  })

const noKey = (message: string): Problem => problem("unauthorized", [{ path: apiKeyHeader, message }])
const missing = noKey("the header is missing")
const unknown = noKey("the key is unknown or revoked")

/** The account behind a key. */
export const authenticate = (tenants: Tenants["Service"], key: string): Effect.Effect<Principal, Problem> => {
  if (key === "") return Effect.fail(missing)
  if (key.length > maxKeyLength) return Effect.fail(unknown)
  return Effect.flatMap(available(tenants.authenticate(Redacted.make(key)), "keys"), (principal) =>
    principal === null ? Effect.fail(unknown) : Effect.succeed(principal)
  )
}

/** The account's allowance as headers of every authenticated answer. */
const headersOf = ({ limit, remaining, resetSeconds }: Allowance) => ({
  "ratelimit-limit": String(limit),
  "ratelimit-remaining": String(remaining),
  "ratelimit-reset": String(resetSeconds)
})

/** Why this account may not go on; null: it may. */
const refusal = (principal: Principal, allowance: Allowance, scope: Scope): Problem | null => {
  if (!allowance.allowed)
    return problem("rate_limited", [], { headers: ErrorEnvelope.retryAfter(allowance.resetSeconds) })
  if (principal.paused) return problem("account_paused")
  if (principal.scopes.has(scope)) return null
  return problem("scope_missing", [{ path: apiKeyHeader, message: `the endpoint needs the scope ${scope}` }])
}

/** 1 to 255 visible ASCII characters (decisions, 9). */
const keyShape = /^[\x21-\x7e]{1,255}$/

/** What the endpoint does not take, though it may look as if it did: it is refused, never ignored. */
const unsupportedBy = (endpoint: Endpoint, request: HttpServerRequest): Problem | null => {
  const { headers, url } = request
  const refused = (path: string, message: string) => problem("invalid_request", [{ path, message }])
  const key = headers[idempotencyHeader.toLowerCase()]
  if (key !== undefined && !endpoint.idempotent)
    return refused(idempotencyHeader, "the endpoint takes no idempotency key; leave the header out")
  if (key !== undefined && !keyShape.test(key))
    return refused(idempotencyHeader, "expected 1 to 255 visible ASCII characters")
  if (headers[metadataHeader.toLowerCase()] !== undefined && !endpoint.idempotent)
    return refused(metadataHeader, "the endpoint takes no metadata; leave the header out")
  if (endpoint.query === null && url.includes("?")) {
    const instead = endpoint.decode === null ? "" : "; send a JSON body"
    return problem("unknown_field", [{ path: "", message: `the endpoint takes no query${instead}` }])
  }
  return endpoint.decode === null && Payload.isKnownToFollow(request) ? Payload.noneTaken : null
}

export interface Parts {
  readonly endpoints: Endpoints
  readonly inFlight: InFlightLimit
  readonly anonymous: AnonymousRateLimit
}

/**
 * In this order: a place among the requests under way, the key, the account's limits, what the endpoint does not take.
 * Every authenticated request counts against the account's windows, whatever becomes of it.
 */
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
      const admit = Effect.fnUntraced(function* (key: string, endpoint: Endpoint) {
        const known = yield* Exchange
        const ticket = yield* Effect.withFiber((fiber) => Effect.succeed(inFlight.enter(fiber)))
        if (typeof ticket === "string")
          return yield* Effect.fail(problem(ticket, [], { headers: ErrorEnvelope.retryAfter(1) }))
        known.ticket = ticket
        const principal = yield* authenticate(tenants, key)
        anonymous.recognise(key)
        known.anonymousAddress = null
        known.principal = principal
        const allowance = yield* available(limiter.take(principal.accountId, limitsOf(principal)), "windows")
        known.headers = headersOf(allowance)
        const why =
          refusal(principal, allowance, endpoint.scope) ?? unsupportedBy(endpoint, yield* HttpServerRequest)
        if (why !== null) return yield* Effect.fail(why)
      })
      return {
        apiKey: (handler, { credential, endpoint }) =>
          Effect.matchEffect(admit(Redacted.value(credential), endpoints.named(endpoint.identifier)), {
            onFailure: refuse,
            onSuccess: () => handler
          })
      }
    })
  )
