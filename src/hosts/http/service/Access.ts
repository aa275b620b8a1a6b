import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Troubles from "../../../application/observe/Troubles.js"
import { type Allowance, limitsOf, type RateLimit } from "../../../application/ports/RateLimit.js"
import type { Principal, Scope, Tenants } from "../../../application/ports/Tenants.js"
import { apiKeyHeader } from "../contract/EndpointAnnotations.js"
import { type Problem, problem, retryAfter } from "../message/ErrorEnvelope.js"

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
          Effect.fail(problem("unavailable", [], { headers: retryAfter(1) }))
        ),
      onSuccess: (value) => Effect.as(troubles.passed(trouble), value)
    })
  })

/** The account behind a key. */
export const authenticate = (tenants: Tenants["Service"], key: string): Effect.Effect<Principal, Problem> => {
  if (key === "") return Effect.fail(missing)
  if (key.length > maxKeyLength) return Effect.fail(unknown)
  return Effect.flatMap(available(tenants.authenticate(Redacted.make(key)), "keys"), (principal) =>
    principal === null ? Effect.fail(unknown) : Effect.succeed(principal)
  )
}

const noKey = (message: string): Problem => problem("unauthorized", [{ path: apiKeyHeader, message }])

const missing = noKey("the header is missing")

const unknown = noKey("the key is unknown or revoked")

/**
 * Counts the request against the account's windows. Every authenticated request counts, whatever becomes of it;
 * one that is refused here does not.
 */
export const count = (
  limiter: RateLimit["Service"],
  principal: Principal
): Effect.Effect<Allowance, Problem> =>
  available(limiter.take(principal.accountId, limitsOf(principal)), "windows")

/** The account's allowance as headers of every authenticated answer. */
export const headers = (allowance: Allowance): Readonly<Record<string, string>> => ({
  "ratelimit-limit": String(allowance.limit),
  "ratelimit-remaining": String(allowance.remaining),
  "ratelimit-reset": String(allowance.resetSeconds)
})

/** Why this account may not go on; null: it may. */
export const refusal = (principal: Principal, allowance: Allowance, scope: Scope): Problem | null => {
  if (!allowance.allowed) return problem("rate_limited", [], { headers: retryAfter(allowance.resetSeconds) })
  if (principal.paused) return problem("account_paused")
  if (!principal.scopes.has(scope))
    return problem("scope_missing", [
      { path: apiKeyHeader, message: `the endpoint needs the scope ${scope}` }
    ])
  return null
}
