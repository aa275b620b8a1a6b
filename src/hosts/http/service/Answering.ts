import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import * as SchemaIssue from "effect/SchemaIssue"
import * as StoreFailure from "../../../application/failures/StoreFailure.js"
import * as Refusals from "../../../application/ports/operator/Refusals.js"
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import type { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import * as ClientAddress from "../limits/ClientAddress.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import * as Pages from "../message/Pages.js"
import * as Authentication from "./Authentication.js"
import * as Cors from "./Cors.js"
import type { Endpoint, Endpoints, Methods, Place } from "./Endpoints.js"
import * as Exchange from "./Exchange.js"

/**
 * Answers each HTTP request: finds its endpoint, refuses what no use case should see, and encodes the result or the
 * failure. `UseCases` runs in between; `HttpService` joins the two.
 */

type Response = HttpServerResponse.HttpServerResponse

export type App = Effect.Effect<Response, never, HttpServerRequest>

/** Calls an endpoint, once it is found. */
export type Ask = (
  request: HttpServerRequest,
  endpoint: Endpoint,
  known: Exchange.Known,
  params: Place["params"]
) => Effect.Effect<unknown, Problem | Body.Broken>

export interface Parts {
  readonly endpoints: Endpoints
  readonly inFlight: InFlightLimit
  readonly anonymous: AnonymousRateLimit
  readonly origins: Cors.Origins
  /** Records a known account's request that gets 422. */
  readonly refused: (refusal: Refusals.Refusal) => void
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
}

/** Headers of every response: the service is not a web page, and its responses go stale immediately. */
const commonHeaders = Headers.fromInput({
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'"
})

/** For a transport that wrongly reports that its client has gone. */
const clientGone = problem("invalid_request", [{ path: "", message: "the request broke off" }])

const soon = { headers: ErrorEnvelope.retryAfter(1) }

/** Wraps all endpoints: turns every failure into the error envelope, sets the common headers and logs a line per request. */
export const make = (parts: Parts, ask: Ask): App =>
  Effect.withFiber(({ context }) => {
    const request = Context.getUnsafe(context, HttpServerRequest)
    const clock = Context.get(context, Clock.Clock)
    const known = Exchange.begin(request.method, clock.currentTimeMillisUnsafe())
    const conclude = (response: Response, status: number | null): Effect.Effect<Response> => {
      known.status = status
      if (known.ticket !== null) parts.inFlight.leave(known.ticket)
      // A failed lookup of a key does not count as an invalid key.
      if (known.isAnonymous && response.status < 500) {
        const { address = ClientAddress.of(request, parts.trustedProxies) } = known
        if (address !== null) parts.anonymous.count(address, known.began)
      }
      known.millis = clock.currentTimeMillisUnsafe() - known.began
      Exchange.count(known, context)
      const headers = Object.assign(
        Headers.merge(commonHeaders, Headers.empty),
        known.headers,
        Cors.headers(request, parts.origins),
        // Headers of the response itself win.
        response.headers
      )
      // Already lower-case: `setHeaders` would process each name again.
      const whole: Response = Object.assign(Object.create(Object.getPrototypeOf(response)), response, {
        headers
      })
      return known.isQuiet ? Effect.succeed(whole) : Effect.as(Exchange.log(known), whole)
    }
    return Effect.uninterruptible(
      Effect.matchCauseEffect(
        Effect.interruptible(
          Effect.flatMap(edge(request, known, parts, ask), (success) => encode(success, known))
        ),
        {
          onSuccess: (response) => conclude(response, response.status),
          onFailure: (cause) =>
            Effect.flatMap(after(cause, known, parts), (why) => {
              const { body, headers, status } = ErrorEnvelope.answer(why ?? clientGone, known.requestId)
              if (why !== null && status === 422) noteRefusal(why, body, known, parts)
              known.code = why?.code ?? null
              Object.assign(known.headers, headers)
              const response = HttpServerResponse.text(body, { status, contentType: "application/json" })
              return conclude(response, why === null ? null : status)
            })
        }
      )
    )
  })

/** Records refused writes of known accounts. The journal has the outcome of an accepted request. */
const noteRefusal = (
  { code, details: [first], message }: Problem,
  body: string,
  { began, chainId, endpoint, principal, requestId }: Exchange.Known,
  { refused }: Pick<Parts, "refused">
): void => {
  if (endpoint === null || principal === null || !endpoint.idempotent || code === "outcome_unknown") return
  refused({
    requestId,
    accountId: principal.accountId,
    endpoint: endpoint.path,
    chainId,
    code,
    message: [...new Set([message, ...(first === undefined ? [] : [first.message])])]
      .join(": ")
      .slice(0, longestMessage),
    answer: body.length > Refusals.longestAnswer ? null : body,
    at: began
  })
}

const longestMessage = 500

/** Refuses keyless callers over their limit, and unknown paths and methods, before any use case runs. */
const edge = (request: HttpServerRequest, known: Exchange.Known, parts: Parts, ask: Ask): ReturnType<Ask> => {
  const { anonymous, endpoints, origins, trustedProxies } = parts
  const query = request.url.indexOf("?")
  const place = endpoints(query < 0 ? request.url : request.url.slice(0, query))
  const methods = place?.methods
  // HEAD is GET without the body, which the transport drops.
  const found = methods?.get(request.method === "HEAD" && !methods.has("HEAD") ? "GET" : request.method)
  if (found === undefined || !("encode" in found) || !found.unlimited) {
    const key = request.headers[Authentication.keyHeader] ?? ""
    if (!anonymous.recognises(key)) known.address = ClientAddress.of(request, trustedProxies)
    const { address = null } = known
    if (address !== null && anonymous.refuses(address, key, known.began)) {
      known.isQuiet = !anonymous.firstRefusal(address)
      return Effect.fail(tooMany(anonymous.resetSeconds(known.began)))
    }
    known.isAnonymous = true
  }
  if (place === undefined) return Effect.fail(problem("not_found"))
  const preflight = Cors.preflight(request, place.methods.keys(), origins)
  if (preflight !== null) return Effect.succeed(preflight)
  if (found === undefined) return Effect.fail(notAllowed(place.methods))
  if (!("encode" in found)) return Effect.sync(() => Pages.answer(found))
  known.endpoint = found
  return ask(request, found, known, place.params)
}

const tooMany = (seconds: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: "too many requests without a valid key from this address" }],
    { headers: ErrorEnvelope.retryAfter(seconds) }
  )

const notAllowed = (methods: Methods): Problem => {
  const allow = [...methods.keys(), ...(methods.has("GET") ? ["HEAD"] : [])].join(", ")
  return problem("method_not_allowed", [{ path: "", message: `expected ${allow}` }], { headers: { allow } })
}

const places = SchemaIssue.makeFormatterDefault()

/** Encodes a success as JSON, unless it already is a response. */
const encode = (success: unknown, { endpoint }: Exchange.Known): Effect.Effect<Response> => {
  if (endpoint === null || HttpServerResponse.isHttpServerResponse(success))
    return Effect.succeed(success as Response)
  const json = endpoint.encode(success)
  if (Result.isSuccess(json)) return Effect.succeed(HttpServerResponse.jsonUnsafe(json.success))
  // Names only paths, no values.
  const why = `the answer of ${endpoint.name} does not fit the contract: ${places(json.failure)}`
  return Effect.die(new Error(why))
}

/** The response to a failed request; null when the client has gone. */
const after = (
  cause: Cause.Cause<Problem | Body.Broken>,
  known: Exchange.Known,
  { inFlight }: Parts
): Effect.Effect<Problem | null> => {
  const failure = cause.reasons.find(Cause.isFailReason)?.error
  if (failure !== undefined && !(failure instanceof Body.Broken)) return Effect.succeed(failure)
  return Effect.gen(function* () {
    const isBroken =
      failure !== undefined || (Cause.hasInterruptsOnly(cause) && (inFlight.stopping || (yield* interrupted)))
    if (isBroken) return inFlight.stopping ? problem("shutting_down", [], soon) : null
    yield* Exchange.logDefect(known, cause)
    return StoreFailure.isIn(cause) ? problem("unavailable", [], soon) : problem("internal_error")
  })
}

/**
 * Whether this fiber itself was interrupted, checked in an uninterruptible region: a use case that interrupts itself has
 * crashed.
 */
const interrupted: Effect.Effect<boolean> = Effect.map(
  Effect.exit(Effect.interruptible(Effect.void)),
  Exit.isFailure
)
