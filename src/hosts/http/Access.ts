import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Accounts, type Principal, type Scope } from "../../application/ports/Accounts.js"
import { type Allowance, RateLimit } from "../../application/ports/RateLimit.js"
import { apiKeyHeader } from "./Contract.js"
import { type Problem, problem, retryAfter } from "./ErrorEnvelope.js"

/** Longest header that can be a key. */
const maxKeyLength = 512

/** The account behind a key. A store that fails is a defect: nobody gets in, and nobody is told why. */
export const authenticate = (key: string): Effect.Effect<Principal, Problem, Accounts> =>
  Effect.gen(function* () {
    if (key === "") return yield* Effect.fail(noKey("the header is missing"))
    if (key.length > maxKeyLength) return yield* Effect.fail(noKey("the key is unknown or revoked"))
    const accounts = yield* Accounts
    const principal = yield* Effect.orDie(accounts.authenticate(Redacted.make(key)))
    return principal ?? (yield* Effect.fail(noKey("the key is unknown or revoked")))
  })

const noKey = (message: string): Problem => problem("unauthorized", [{ path: apiKeyHeader, message }])

/**
 * Counts the request against the account's windows. Every authenticated request counts, whatever becomes of it;
 * one that is refused here does not.
 */
export const count = (principal: Principal): Effect.Effect<Allowance, never, RateLimit> =>
  Effect.flatMap(RateLimit, (limiter) => Effect.orDie(limiter.take(principal.accountId, principal.tier)))

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
