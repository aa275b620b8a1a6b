import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Result from "effect/Result"
import type { Detail } from "../../../application/failures/Failure.js"
import { lastEventHeader } from "../contract/EndpointAnnotations.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Endpoint } from "./Endpoints.js"

const lastEvent = lastEventHeader.toLowerCase()

/** Decodes the query of a request; refuses unknown parameters, as in a body. */
export const read = (
  { headers, url }: HttpServerRequest,
  { query, streams }: Endpoint
): Result.Result<object, Problem> => {
  if (query === null) return Result.succeed({})
  const sent = new URLSearchParams(url.replace(/^[^?]*\??/s, ""))
  const last = headers[lastEvent]
  // Last-Event-ID names the event to resume after, and wins over the query.
  if (streams && last !== undefined && last !== "") sent.set("after", last)
  const names = [...sent.keys()]
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined)
    return Result.fail(
      problem("invalid_request", [{ path: twice, message: "expected it once in the query" }])
    )
  const placed = (detail: Detail): Detail =>
    last !== undefined && detail.path === "after" ? { ...detail, path: lastEventHeader } : detail
  return Result.mapError(query(Object.fromEntries(sent)), (refused) => ({
    ...refused,
    details: refused.details.map(placed)
  }))
}
