import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"

/** Limits of a body, in bytes as counted; headers are not trusted. */
export interface Limits {
  /** Longest body accepted. */
  readonly maxBytes: number
  /** A longer body is read up to here before it is refused, so that the refusal reaches a client that still sends. */
  readonly drainBytes: number
}

/** The transport failed before the end of the body: the client has gone, or its framing is broken. */
export class Broken extends Data.TaggedError("Broken")<Record<never, never>> {}

/** The bytes of a body; null when it is too long. */
export type Read = (
  request: HttpServerRequest,
  limits: Limits
) => Effect.Effect<Uint8Array<ArrayBufferLike> | null, Broken>

/** Reads a body; transports may replace it. The default times out after a minute, like node's server. */
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
