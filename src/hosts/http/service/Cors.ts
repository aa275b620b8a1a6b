import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Contract from "../contract/EndpointAnnotations.js"

/** Web origins whose pages may use the service, exactly as browsers send them; empty: no page may. */
export type Origins = ReadonlySet<string>

/** Response headers that pages may read. */
const exposed =
  "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Location, Preference-Applied"

const permitted = [
  "Content-Type",
  Contract.apiKeyHeader,
  Contract.idempotencyHeader,
  Contract.ifMatchHeader,
  Contract.lastEventHeader,
  Contract.metadataHeader,
  Contract.preferHeader
].join(", ")

/** Lifetime of a preflight result, in seconds: two hours, the most that Chromium keeps. */
const maxAge = "7200"

/** CORS headers of every response, without credentials: pages send keys themselves, and the service reads no cookies. */
export const headers = (
  { headers: { origin = "" } }: HttpServerRequest,
  origins: Origins
): Readonly<Record<string, string>> => {
  if (origins.size === 0) return {}
  return {
    vary: "Origin",
    ...(origins.has(origin) && {
      "access-control-allow-origin": origin,
      "access-control-expose-headers": exposed
    })
  }
}

/** The response to a CORS preflight for this path; null when the request is not a preflight. */
export const preflight = (
  { headers, method }: HttpServerRequest,
  methods: Iterable<string>,
  origins: Origins
): HttpServerResponse.HttpServerResponse | null =>
  method !== "OPTIONS" ||
  (headers["access-control-request-method"] ?? "") === "" ||
  !origins.has(headers.origin ?? "")
    ? null
    : HttpServerResponse.text("{}", {
        contentType: "application/json",
        headers: {
          vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
          "access-control-allow-methods": [...methods].join(", "),
          "access-control-allow-headers": permitted,
          "access-control-max-age": maxAge
        }
      })
