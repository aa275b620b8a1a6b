import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as MemoryService from "../../support/http/MemoryService.js"
import { type Answered, ask, envelope, key } from "../../support/http/Service.js"

/** Requests to endpoints of a service without a database, chain or socket. */

export type Send = (
  path: string,
  /** JSON, or a text as it is. Absent: the method is GET by default, otherwise PUT. */
  body?: unknown,
  more?: { readonly method?: string; readonly headers?: Readonly<Record<string, string>> }
) => Effect.Effect<Answered>

/** A test with requests to its own service, below this path. */
export const facts =
  (below: string) =>
  (text: string, body: (send: Send) => Effect.Effect<void>): void => {
    it.live(text, () =>
      Effect.flatMap(MemoryService.make, (front) =>
        body((path, given, { headers = {}, method } = {}) => {
          const sent = typeof given === "string" ? given : JSON.stringify(given)
          const ofBody = sent && { "content-type": "application/json", "content-length": `${sent.length}` }
          return ask(front, {
            method: method ?? (sent === undefined ? "GET" : "PUT"),
            target: `${below}${path}`,
            headers: { "x-api-key": key, ...(ofBody ?? {}), ...headers },
            ...(sent !== undefined && { body: sent })
          })
        })
      )
    )
  }

/** Status, code and details of a refusal. */
export const refusal = (answer: Answered): ReadonlyArray<unknown> => {
  const { code, details } = envelope(answer)
  return [answer.status, code, ...details.map(({ message, path }) => `${path}: ${message}`)]
}
