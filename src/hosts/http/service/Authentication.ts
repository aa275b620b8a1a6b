import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Redacted from "effect/Redacted"
import * as Troubles from "../../../application/observe/Troubles.js"
import { type Allowance, limitsOf, RateLimit } from "../../../application/ports/RateLimit.js"
import { type Principal, type Scope, Tenants } from "../../../application/ports/Tenants.js"
import { apiKeyHeader, idempotencyHeader, metadataHeader } from "../contract/EndpointAnnotations.js"
import type { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Endpoint } from "./Endpoints.js"
import type { Known } from "./Exchange.js"
import * as Payload from "./Payload.js"

export const keyHeader = apiKeyHeader.toLowerCase()

/** Longest possible key, in characters. */
const maxKeyLength = 512

/** Refuses requests while the store is unavailable; only the log has the cause. */
const available = <A>(
  effect: Effect.Effect<A, { readonly message: string }>,
  place: "keys" | "windows"
): Effect.Effect<A, Problem> =>
  Effect.flatMap(Troubles.Shared, (troubles) => {
    const trouble = { what: "authentication store unavailable", place }
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

export const authenticate = (tenants: Tenants["Service"], key: string): Effect.Effect<Principal, Problem> => {
  if (key === "") return Effect.fail(missing)
  if (key.length > maxKeyLength) return Effect.fail(unknown)
  return Effect.flatMap(available(tenants.authenticate(Redacted.make(key)), "keys"), (principal) =>
    principal === null ? Effect.fail(unknown) : Effect.succeed(principal)
  )
}

/** The account's allowance, as headers of every authenticated response. */
const headersOf = ({ limit, remaining, resetSeconds }: Allowance) => ({
  "ratelimit-limit": String(limit),
  "ratelimit-remaining": String(remaining),
  "ratelimit-reset": String(resetSeconds)
})

/** Reason to refuse the account; null: none. */
const refusal = (principal: Principal, allowance: Allowance, scope: Scope): Problem | null => {
  if (!allowance.allowed)
    return problem("rate_limited", [], { headers: ErrorEnvelope.retryAfter(allowance.resetSeconds) })
  if (principal.paused) return problem("account_paused")
  if (principal.scopes.has(scope)) return null
  return problem("scope_missing", [{ path: apiKeyHeader, message: `the endpoint needs the scope ${scope}` }])
}

/** 1 to 255 visible ASCII characters (decision 9). */
const keyShape = /^[\x21-\x7e]{1,255}$/

/** Refuses headers and parameters that the endpoint does not support, instead of ignoring them. */
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

/** Admits a request to its endpoint, or fails with the reason for the refusal. */
export type Admission = (
  request: HttpServerRequest,
  endpoint: Endpoint,
  known: Known
) => Effect.Effect<void, Problem>

/**
 * Checks, in this order: a slot for the request, the key, the account's limits, unsupported headers. Every authenticated
 * request counts against the account's windows, whatever its outcome.
 */
export const make = (
  inFlight: InFlightLimit,
  anonymous: AnonymousRateLimit
): Effect.Effect<Admission, never, Tenants | RateLimit> =>
  Effect.gen(function* () {
    const tenants = yield* Tenants
    const limiter = yield* RateLimit
    return (request, endpoint, known) =>
      Effect.withFiber((fiber) => {
        const ticket = inFlight.enter(fiber)
        if (typeof ticket === "string")
          return Effect.fail(problem(ticket, [], { headers: ErrorEnvelope.retryAfter(1) }))
        known.ticket = ticket
        const key = request.headers[keyHeader] ?? ""
        return Effect.flatMap(authenticate(tenants, key), (principal) => {
          anonymous.recognise(key)
          known.isAnonymous = false
          known.principal = principal
          const taken = available(limiter.take(principal.accountId, limitsOf(principal)), "windows")
          return Effect.flatMap(taken, (allowance) => {
            Object.assign(known.headers, headersOf(allowance))
            const why = refusal(principal, allowance, endpoint.scope) ?? unsupportedBy(endpoint, request)
            return why === null ? Effect.void : Effect.fail(why)
          })
        })
      })
  })
