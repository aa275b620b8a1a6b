import { readFileSync } from "node:fs"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

/** A fixed page outside the API, open without a key to anyone with its path. */
export interface Page {
  readonly contentType: string
  readonly body: Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

export type Pages = ReadonlyMap<string, Page>

/** For pages that load only their own files and call only this service: no inline code, no other hosts. */
export const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** A text file, read on first use. All responses share the bytes: slow readers hold no copies. */
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
