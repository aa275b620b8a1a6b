import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import {
  apiKeyHeader,
  idempotencyHeader,
  lastEventHeader,
  metadataHeader,
  preferHeader
} from "../contract/EndpointAnnotations.js"

/** Web origins whose pages may use the service, exactly as browsers send them; none: no browser page may. */
export type Origins = ReadonlySet<string>

/** What pages may read of an answer beside its body. */
const exposed = [
  "X-Request-Id",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
  "Retry-After",
  "Location",
  "Preference-Applied"
]

const permitted = [
  "Content-Type",
  apiKeyHeader,
  idempotencyHeader,
  lastEventHeader,
  metadataHeader,
  preferHeader
]

/** How long a browser need not ask again, seconds: two hours, the most that Chromium keeps. */
const maxAge = 7_200

const allows = (origins: Origins, { headers }: HttpServerRequest): boolean =>
  origins.has(headers.origin ?? "")

/**
 * Headers of every answer. Never of credentials: keys are sent by the page itself, and no cookie is ever looked at.
 */
export const headers = (request: HttpServerRequest, origins: Origins): Readonly<Record<string, string>> => {
  if (origins.size === 0) return {}
  if (!allows(origins, request)) return { vary: "Origin" }
  return {
    vary: "Origin",
    "access-control-allow-origin": request.headers.origin ?? "",
    "access-control-expose-headers": exposed.join(", ")
  }
}

/** The answer to a browser that asks on behalf of a page what it may send to this path; null: it is no such question. */
export const preflight = (
  request: HttpServerRequest,
  methods: Iterable<string>,
  origins: Origins
): HttpServerResponse.HttpServerResponse | null => {
  if (request.method !== "OPTIONS" || (request.headers["access-control-request-method"] ?? "") === "")
    return null
  if (!allows(origins, request)) return null
  return HttpServerResponse.text("{}", {
    contentType: "application/json",
    headers: {
      vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
      "access-control-allow-methods": [...methods].join(", "),
      "access-control-allow-headers": permitted.join(", "),
      "access-control-max-age": String(maxAge)
    }
  })
}
