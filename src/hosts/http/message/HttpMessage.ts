import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type * as Body from "./Body.js"

/**
 * One HTTP request, as little of it as the front needs. Each transport (node:http, an Effect server, a fetch
 * handler) makes one of these, so that every rule of the front holds whichever of them serves it.
 */
export interface Incoming {
  /** In upper case. */
  readonly method: string
  /** Path and query, as sent. */
  readonly target: string
  /** Names in lower case; the values of a repeated header are joined. */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** The address at the other end of the connection; null where the transport does not tell. */
  readonly remoteAddress: string | null
  /** Reads the body into the collector, to its end or until the collector wants no more. */
  readonly readBody: (collector: Body.Collector) => Effect.Effect<void, Body.Broken>
}

/** The values of a header, joined; empty when it is absent. `name` in lower case. */
export const header = (incoming: Incoming, name: string): string => {
  const value = incoming.headers[name]
  return typeof value === "string" ? value : (value?.join(", ") ?? "")
}

/** One HTTP response. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Text, bytes that answers share, or text that comes bit by bit; who does not want the last must not run it. */
  readonly body: string | Uint8Array | Stream.Stream<string>
}

export const isWhole = (body: Answer["body"]): body is string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array
