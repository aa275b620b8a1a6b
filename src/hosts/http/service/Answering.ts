import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { isHttpServerError } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { HttpApiSchemaError } from "effect/http-api/HttpApiError"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as StoreFailure from "../../../application/request/StoreFailure.js"
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import { apiKeyHeader, lastEventHeader } from "../contract/EndpointAnnotations.js"
import type { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import * as ClientAddress from "../limits/ClientAddress.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import * as Cors from "./Cors.js"
import * as Decode from "./Decode.js"
import type { Endpoints, Place } from "./Endpoints.js"
import * as Exchange from "./Exchange.js"

type Response = HttpServerResponse.HttpServerResponse

/** What a request is answered with, before and after the middleware. */
export type App<E = never> = Effect.Effect<Response, E, HttpServerRequest>

export interface Parts {
  readonly endpoints: Endpoints
  readonly inFlight: InFlightLimit
  readonly anonymous: AnonymousRateLimit
  readonly origins: Cors.Origins
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
}

/** On every answer. The service is no web page, and what it says is of the moment. */
const commonHeaders = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'"
}

/** Never seen by anyone, but a transport that is wrong about its client still has an answer to give. */
const clientGone = problem("invalid_request", [{ path: "", message: "the request broke off" }])

const soon = { headers: ErrorEnvelope.retryAfter(1) }

/**
 * The outermost middleware: whatever stopped the request is answered in the one envelope, every answer has its headers,
 * and the request its line in the log.
 */
export const middleware =
  (parts: Parts) =>
  (router: App<unknown>): App =>
    Effect.withFiber((fiber) =>
      Effect.flatMap(HttpServerRequest, (request) => {
        const clock = fiber.getRef(Clock.Clock)
        const known = Exchange.begin(request.method, clock.currentTimeMillisUnsafe())
        const conclude = (response: Response): Effect.Effect<Response> => {
          if (known.ticket !== null) parts.inFlight.leave(known.ticket)
          // An account's key that could not be looked up is not counted as none.
          if (known.anonymousAddress !== null && response.status < 500)
            parts.anonymous.count(known.anonymousAddress, known.began)
          known.millis = clock.currentTimeMillisUnsafe() - known.began
          Exchange.count(known, fiber.context)
          const whole = HttpServerResponse.setHeaders(response, {
            ...commonHeaders,
            "x-request-id": known.requestId,
            ...known.headers,
            ...(parts.origins.size === 0 ? null : Cors.headers(request, parts.origins)),
            // What the answer says itself stays.
            ...response.headers
          })
          return known.isQuiet ? Effect.succeed(whole) : Effect.as(Exchange.log(known), whole)
        }
        const app = Effect.provideService(edge(router, request, known, parts), Exchange.Exchange, known)
        return Effect.uninterruptible(
          Effect.matchCauseEffect(Effect.interruptible(app), {
            onSuccess: (response) => {
              known.status = response.status
              return conclude(response)
            },
            onFailure: (cause) =>
              Effect.flatMap(after(cause, request, known, parts), (why) => {
                known.code = why?.code ?? null
                const response = ErrorEnvelope.response(why ?? clientGone, known.requestId)
                known.status = why === null ? null : response.status
                return conclude(response)
              })
          })
        )
      })
    )

/** What is answered before the router is asked: strangers that ask too often, and what the contract does not have. */
const edge = (
  router: App<unknown>,
  request: HttpServerRequest,
  known: Exchange.Known,
  { anonymous, endpoints, origins, trustedProxies }: Parts
): App<unknown> => {
  const path = request.url.replace(/\?.*$/s, "")
  const place = endpoints.find(path)
  // HEAD is GET without the body, which the transport leaves out.
  const endpoint = place?.get(request.method === "HEAD" && !place.has("HEAD") ? "GET" : request.method)
  const address = endpoint?.unlimited === true ? null : ClientAddress.of(request, trustedProxies)
  const key = request.headers[apiKeyHeader.toLowerCase()] ?? ""
  if (address !== null && anonymous.refuses(address, key, known.began)) {
    known.isQuiet = !anonymous.firstRefusal(address)
    return Exchange.refuse(tooMany(anonymous.resetSeconds(known.began)))
  }
  known.anonymousAddress = address
  if (place === undefined) return Exchange.refuse(problem("not_found"))
  const preflight = Cors.preflight(request, place.keys(), origins)
  if (preflight !== null) return Effect.succeed(preflight)
  if (endpoint === undefined) return Exchange.refuse(notAllowed(place))
  known.endpoint = endpoint
  const last = request.headers[lastEventHeader.toLowerCase()] ?? ""
  if (last === "" || endpoint?.streams !== true) return router
  // The header says after which event the stream goes on, and comes before the query.
  const query = new URLSearchParams(request.url.slice(path.length))
  query.set("after", last)
  return Effect.provideService(router, HttpServerRequest, request.modify({ url: `${path}?${query}` }))
}

const tooMany = (seconds: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: "too many requests without a valid key from this address" }],
    { headers: ErrorEnvelope.retryAfter(seconds) }
  )

const notAllowed = (place: Place): Problem => {
  const allow = [...place.keys(), ...(place.has("GET") ? ["HEAD"] : [])].join(", ")
  return problem("method_not_allowed", [{ path: "", message: `expected ${allow}` }], { headers: { allow } })
}

/** The answer to whatever stopped the request, a refusal apart. Null: nobody is left to answer. */
const after = (
  cause: Cause.Cause<unknown>,
  request: HttpServerRequest,
  known: Exchange.Known,
  { inFlight }: Parts
): Effect.Effect<Problem | null> =>
  Effect.gen(function* () {
    const what = Cause.squash(cause)
    if (isHttpServerError(what) && what.reason._tag === "RouteNotFound") return problem("not_found")
    const query = known.endpoint?.query ?? null
    if (HttpApiSchemaError.is(what) && what.kind === "Query" && query !== null)
      return queryProblem(what, request, query)
    const isBroken =
      what instanceof Body.Broken ||
      (Cause.hasInterruptsOnly(cause) && (inFlight.stopping || (yield* interrupted)))
    if (isBroken) return inFlight.stopping ? problem("shutting_down", [], soon) : null
    yield* Exchange.logDefect(known, HttpApiSchemaError.is(what) ? Cause.die(unfit(what, known)) : cause)
    return StoreFailure.isIn(cause) ? problem("unavailable", [], soon) : problem("internal_error")
  })

/**
 * Whether this fiber itself was interrupted, in a region where that has no effect: a use case that ends interrupted
 * for reasons of its own has crashed.
 */
const interrupted: Effect.Effect<boolean> = Effect.map(
  Effect.exit(Effect.interruptible(Effect.void)),
  Exit.isFailure
)

const places = SchemaIssue.makeFormatterDefault()

/** Names the places only. */
const unfit = ({ cause }: HttpApiSchemaError, { endpoint }: Exchange.Known): Error =>
  new Error(`the answer of ${endpoint?.name} does not fit the contract: ${places(cause.issue)}`)

const queryProblem = (
  { cause }: HttpApiSchemaError,
  { headers, url }: HttpServerRequest,
  schema: Schema.Top
): Problem => {
  const pairs = [...new URLSearchParams(url.replace(/^[^?]*\??/s, ""))]
  const names = pairs.map(([name]) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined)
    return problem("invalid_request", [{ path: twice, message: "expected it once in the query" }])
  const refused = Decode.problemOf(cause.issue, schema, Object.fromEntries(pairs))
  if (headers[lastEventHeader.toLowerCase()] === undefined) return refused
  return {
    ...refused,
    details: refused.details.map((detail) =>
      detail.path === "after" ? { ...detail, path: lastEventHeader } : detail
    )
  }
}
