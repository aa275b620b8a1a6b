import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Contract from "../contract/EndpointAnnotations.js"

/** Web origins whose pages may use the service, exactly as browsers send them; none: no browser page may. */
export type Origins = ReadonlySet<string>

/** What pages may read of an answer beside its body. */
const exposed =
  "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Location, Preference-Applied"

const permitted = [
  "Content-Type",
  Contract.apiKeyHeader,
  Contract.idempotencyHeader,
  Contract.lastEventHeader,
  Contract.metadataHeader,
  Contract.preferHeader
].join(", ")

/** How long a browser need not ask again, seconds: two hours, the most that Chromium keeps. */
const maxAge = "7200"

/**
 * Headers of every answer. Never of credentials: keys are sent by the page itself, and no cookie is ever looked at.
 */
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

/** The answer to a browser that asks on behalf of a page what it may send to this path; null: it is no such question. */
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
