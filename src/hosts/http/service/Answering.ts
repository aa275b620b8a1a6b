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
import { lastEventHeader } from "../contract/EndpointAnnotations.js"
import type { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import type { InFlightLimit } from "../limits/InFlightLimit.js"
import * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { begin, Exchange, type Known } from "../message/Exchange.js"
import * as Cors from "./Cors.js"
import * as Decode from "./Decode.js"
import * as RequestLog from "./RequestLog.js"

type Response = HttpServerResponse.HttpServerResponse

/** What a request is answered with, before and after the middleware. */
export type App<E = never> = Effect.Effect<Response, E, HttpServerRequest>

export interface Parts {
  readonly inFlight: InFlightLimit
  readonly anonymous: AnonymousRateLimit
  readonly origins: Cors.Origins
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
  (app: App<unknown>): App =>
    Effect.withFiber((fiber) =>
      Effect.flatMap(HttpServerRequest, (request) => {
        const clock = fiber.getRef(Clock.Clock)
        const known = begin(request.method, clock.currentTimeMillisUnsafe())
        const conclude = (response: Response): Effect.Effect<Response> => {
          if (known.ticket !== null) parts.inFlight.leave(known.ticket)
          // An account's key that could not be looked up is not counted as none.
          if (known.anonymousAddress !== null && response.status < 500)
            parts.anonymous.count(known.anonymousAddress, known.began)
          known.millis = clock.currentTimeMillisUnsafe() - known.began
          RequestLog.figures(known, fiber.context)
          const own: Record<string, string | undefined> = {
            ...commonHeaders,
            "x-request-id": known.requestId,
            ...known.headers,
            ...(parts.origins.size === 0 ? null : Cors.headers(request, parts.origins))
          }
          // What the answer says itself stays.
          for (const name of Object.keys(response.headers))
            if (Object.hasOwn(own, name)) own[name] = response.headers[name]
          const whole = HttpServerResponse.setHeaders(response, own)
          return known.isQuiet ? Effect.succeed(whole) : Effect.as(RequestLog.line(known), whole)
        }
        return Effect.uninterruptible(
          Effect.matchCauseEffect(Effect.interruptible(Effect.provideService(app, Exchange, known)), {
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

/** The answer to whatever stopped the request, a refusal apart. Null: nobody is left to answer. */
const after = (
  cause: Cause.Cause<unknown>,
  request: HttpServerRequest,
  known: Known,
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
    yield* RequestLog.defect(known, HttpApiSchemaError.is(what) ? Cause.die(unfit(what, known)) : cause)
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
const unfit = ({ cause }: HttpApiSchemaError, { endpoint }: Known): Error =>
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
  return headers[lastEventHeader.toLowerCase()] === undefined
    ? refused
    : {
        ...refused,
        details: refused.details.map((detail) =>
          detail.path === "after" ? { ...detail, path: lastEventHeader } : detail
        )
      }
}
