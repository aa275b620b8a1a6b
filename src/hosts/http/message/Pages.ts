import { readFileSync } from "node:fs"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** Something fixed that is not part of the interface: who knows its path may read it, without a key. */
export interface Page {
  readonly contentType: string
  readonly body: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/** By path. */
export type Pages = ReadonlyMap<string, Page>

/** For pages that load their own files and ask this service: nothing inline, nothing from elsewhere. */
export const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Text in a file, read when it is first asked for. All answers share the bytes: slow readers hold no copies of them. */
export const file = (place: () => URL, contentType: string, headers: Page["headers"] = {}): Page => {
  let read: Uint8Array | undefined
  return {
    contentType: `${contentType}; charset=utf-8`,
    headers,
    get body() {
      read ??= readFileSync(place())
      return read
    }
  }
}

export const answer = ({ body, contentType, headers }: Page): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.uint8Array(body, { contentType, headers })
