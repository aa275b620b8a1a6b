import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"

/** How much of a body is taken, in bytes. */
export interface Limits {
  /** Longest body that is answered on its merits. */
  readonly maxBytes: number
  /** A longer body is read on up to here before it is refused, so that the refusal reaches a client that still sends. */
  readonly drainBytes: number
}

/** The transport failed before the body's end: the client has gone, or its framing is broken. */
export class Broken extends Data.TaggedError("Broken")<Record<never, never>> {}

/** Reads a body to its end, or until `take` wants no more. */
export type Read = (
  request: HttpServerRequest,
  take: (chunk: Uint8Array) => boolean
) => Effect.Effect<void, unknown>

/** How the transport reads a body, where it has a cheaper way than the request's stream. */
export const Reader = Context.Reference<Read>("castellan/http/Body/Reader", {
  defaultValue: () => (request, take) =>
    Stream.runForEachWhile(request.stream, (chunk) => Effect.sync(() => take(chunk)))
})

/** Counts the bytes of a body as they arrive and keeps them while they fit. No header's claim is believed. */
export class Collector {
  private size = 0
  private chunks: Array<Uint8Array> = []

  constructor(private readonly limits: Limits) {}

  /** Takes the next bytes. False: it wants no more, the body is refused whatever follows. */
  take(chunk: Uint8Array): boolean {
    this.size += chunk.byteLength
    if (this.size <= this.limits.maxBytes) this.chunks.push(chunk)
    else this.chunks = []
    return this.size <= this.limits.drainBytes
  }

  get empty(): boolean {
    return this.size === 0
  }

  /** The body as text. `Failure` says why there is none. */
  text(): Result.Result<string, "body_too_large" | "invalid_json"> {
    if (this.size > this.limits.maxBytes) return Result.fail("body_too_large")
    const [first, ...more] = this.chunks
    try {
      if (first === undefined) return Result.succeed("")
      if (more.length === 0) return Result.succeed(utf8.decode(first))
      const decoder = strictUtf8()
      const texts = this.chunks.map((chunk) => decoder.decode(chunk, { stream: true }))
      return Result.succeed(texts.join("") + decoder.decode())
    } catch {
      return Result.fail("invalid_json")
    }
  }
}

const strictUtf8 = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** For bodies of one piece: a decoder keeps nothing of a text that it was given whole. */
const utf8 = strictUtf8()
