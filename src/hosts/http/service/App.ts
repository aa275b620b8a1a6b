import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Body from "../message/Body.js"
import { type Incoming, isWhole } from "../message/HttpMessage.js"
import * as FetchRequest from "./FetchRequest.js"
import type { HttpService } from "./HttpService.js"

/** The front as a handler of an Effect server, to be mounted in another one. */
export const fromFront = (
  front: HttpService
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest> =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const answer = yield* front.handle(incoming(request))
    const { body, headers, status } = answer
    if (!isWhole(body)) return HttpServerResponse.stream(Stream.encodeText(body), { status, headers })
    return typeof body === "string"
      ? HttpServerResponse.text(body, { status, headers })
      : HttpServerResponse.uint8Array(body, { status, headers })
  })

const incoming = (request: HttpServerRequest.HttpServerRequest): Incoming => {
  const { headers, method, source, url } = request
  const remoteAddress = Option.getOrNull(request.remoteAddress)
  if (isFetchRequest(source)) return FetchRequest.incoming(source, { target: url, remoteAddress })
  const readBody: Incoming["readBody"] = (collector) =>
    Stream.runForEachWhile(request.stream, (chunk) => Effect.sync(() => collector.take(chunk))).pipe(
      Effect.mapError(() => new Body.Broken())
    )
  return { method, target: url, headers, remoteAddress, readBody }
}

/** By its shape: hosts have classes of their own for it. */
const isFetchRequest = (source: unknown): source is Request =>
  typeof source === "object" &&
  source !== null &&
  "body" in source &&
  "arrayBuffer" in source &&
  "signal" in source
