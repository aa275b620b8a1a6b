import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Body from "../message/Body.js"
import type { HttpService } from "./HttpService.js"

/**
 * The front as an `HttpApp`, to be mounted in another Effect server, or served as a fetch handler by
 * `HttpApp.toWebHandler`.
 */
export const fromFront = (front: HttpService): HttpApp.Default =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const answer = yield* front.handle({
      method: request.method,
      target: request.url,
      headers: request.headers,
      remoteAddress: Option.getOrNull(request.remoteAddress),
      readBody: (collector) => readBody(request, collector)
    })
    return HttpServerResponse.text(answer.body, { status: answer.status, headers: answer.headers })
  })

const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  collector: Body.Collector
): Effect.Effect<void, Body.Broken> =>
  // A fetch request without a body has no stream at all, and to ask for it is an error there.
  typeof request.source === "object" &&
  request.source !== null &&
  "body" in request.source &&
  request.source.body === null
    ? Effect.void
    : Stream.runForEachWhile(request.stream, (chunk) => Effect.sync(() => collector.take(chunk))).pipe(
        Effect.mapError(() => new Body.Broken())
      )
