import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import * as Service from "../handlers/Service.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Answer } from "../message/HttpMessage.js"
import type { Accepted } from "./EndpointCall.js"
import type * as Routes from "./Routes.js"

/** On every answer. The service is no web page, and what it says is of the moment. */
export const commonHeaders = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'"
}

/** The answer to a write whose caller does not wait for its outcome. */
export const accepted = ({ requestId }: Accepted, basePath: string): Answer => ({
  status: 202,
  headers: {
    "content-type": "application/json",
    location: `${basePath}/requests/${requestId}`,
    "preference-applied": "respond-async"
  },
  body: JSON.stringify({ requestId, state: "pending" })
})

export const encoded = (route: Routes.Route, value: unknown): Effect.Effect<Answer> =>
  Effect.map(EventLoop.breathe, () => ({
    status: 200,
    headers: { "content-type": route.contentType, ...Service.headers[route.name] },
    body: Result.getOrThrowWith(
      route.encode(value),
      (places) => new Error(`the answer of ${route.name} does not fit the contract: ${places}`)
    )
  }))

/** Never seen by anyone, but a transport that is wrong about its client still has an answer to give. */
export const clientGone = problem("invalid_request", [{ path: "", message: "the request broke off" }])

export const tooMany = (seconds: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: "too many requests without a valid key from this address" }],
    {
      headers: ErrorEnvelope.retryAfter(seconds)
    }
  )

export const tooManyStreams = (most: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: `too many streams of events are open; an account may have ${most}` }],
    { headers: ErrorEnvelope.retryAfter(10) }
  )

export const notAllowed = ({ methods }: Routes.Place): Problem => {
  const allow = [...methods.keys(), ...(methods.has("GET") ? ["HEAD"] : [])].join(", ")
  return problem("method_not_allowed", [{ path: "", message: `expected ${allow}` }], { headers: { allow } })
}
