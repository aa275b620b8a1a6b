import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"

/** How much of a body is taken, in bytes. No header's claim is believed. */
export interface Limits {
  /** Longest body that is answered on its merits. */
  readonly maxBytes: number
  /** A longer body is read on up to here before it is refused, so that the refusal reaches a client that still sends. */
  readonly drainBytes: number
}

/** The transport failed before the body's end: the client has gone, or its framing is broken. */
export class Broken extends Data.TaggedError("Broken")<Record<never, never>> {}

/** The bytes of a body; null: they are too many. */
export type Read = (
  request: HttpServerRequest,
  limits: Limits
) => Effect.Effect<Uint8Array<ArrayBufferLike> | null, Broken>

/** How the transport reads a body, where it has a way of its own. In a minute, as node's server does. */
export const Reader = Context.Reference<Read>("castellan/http/Body/Reader", {
  defaultValue:
    () =>
    (request, { maxBytes }) =>
      request.arrayBuffer.pipe(
        Effect.provideService(MaxBodySize, ByteSize.bytes(maxBytes)),
        Effect.map((bytes) => new Uint8Array(bytes)),
        Effect.catch(({ reason }) =>
          reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
            ? Effect.succeed(null)
            : Effect.fail(new Broken())
        ),
        Effect.timeoutOrElse({ duration: "60 seconds", orElse: () => Effect.fail(new Broken()) })
      )
})
