import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type Problem, problem } from "./ErrorEnvelope.js"

/** Something fixed that is not part of the interface: who knows its path may read it, without a key. */
export interface Page {
  readonly contentType: string
  readonly body: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** By path. */
export type Pages = ReadonlyMap<string, Page>

/** The page at this path; nothing is there, or nothing that takes this method, as anywhere else. */
export const answer = (
  pages: Pages,
  path: string,
  method: string
): Effect.Effect<HttpServerResponse.HttpServerResponse, Problem> => {
  const page = pages.get(path)
  if (page === undefined) return Effect.fail(problem("not_found"))
  if (method !== "GET" && method !== "HEAD")
    return Effect.fail(
      problem("method_not_allowed", [{ path: "", message: "expected GET, HEAD" }], {
        headers: { allow: "GET, HEAD" }
      })
    )
  const { body, contentType, headers } = page
  const described = { contentType, ...(headers !== undefined && { headers }) }
  return Effect.succeed(
    typeof body === "string"
      ? HttpServerResponse.text(body, described)
      : HttpServerResponse.uint8Array(body, described)
  )
}
