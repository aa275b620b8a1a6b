import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Bytes32 } from "../../domain/evm/Hex.js"
import * as Keccak from "../../domain/evm/Keccak.js"
import * as Body from "./Body.js"
import { type Problem, problem } from "./ErrorEnvelope.js"
import { header, type Incoming } from "./Exchange.js"
import * as Json from "./Json.js"
import type { Route } from "./Routes.js"

/** Bounds on a request body. */
export interface Bounds extends Body.Limits, Json.Bounds {}

const contentType = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?;?$/i

/** True when the headers announce a body; only then may a method without a payload be refused for one. */
export const announced = (incoming: Incoming): boolean =>
  header(incoming, "transfer-encoding") !== "" || !["", "0"].includes(header(incoming, "content-length"))

/** A request as its endpoint wants it, and what its bytes were. */
export interface Read {
  readonly request: unknown
  /** keccak256 of the body as it was sent. */
  readonly bodyHash: Bytes32
}

/**
 * The decoded request of an endpoint. Checked, in this order: the media type, the length as counted, the encoding,
 * the syntax, the bounds of the shape, the endpoint's own schema.
 */
export const read = (
  incoming: Incoming,
  bounds: Bounds,
  { bodyOptional, decode }: Pick<Route, "bodyOptional" | "decode">
): Effect.Effect<Read, Problem | Body.Broken> =>
  Effect.gen(function* () {
    if (bodyOptional && !announced(incoming)) return nothing
    const refusal = unreadable(incoming)
    if (refusal !== null) return yield* Effect.fail(refusal)
    const collector = new Body.Collector(bounds)
    yield* incoming.readBody(collector)
    if (bodyOptional && collector.empty) return nothing
    const sent = yield* text(collector, bounds)
    const value = yield* Either.mapLeft(Json.parse(sent, bounds), ({ code, path, message }) =>
      problem(code, [{ path, message }])
    )
    return { request: decode === null ? value : yield* decode(value), bodyHash: Keccak.hashText(sent) }
  })

const nothing: Read = { request: {}, bodyHash: Keccak.hashText("") }

const unreadable = (incoming: Incoming): Problem | null => {
  if (!contentType.test(header(incoming, "content-type").trim()))
    return refused("Content-Type", "expected application/json, in UTF-8")
  const encoding = header(incoming, "content-encoding").toLowerCase()
  if (encoding !== "" && encoding !== "identity")
    return refused("Content-Encoding", "the body must not be compressed")
  return null
}

const refused = (path: string, message: string): Problem =>
  problem("invalid_content_type", [{ path, message }])

const text = (collector: Body.Collector, bounds: Bounds): Either.Either<string, Problem> =>
  Either.mapLeft(collector.text(), (code) =>
    problem(code, [
      {
        path: "",
        message:
          code === "body_too_large"
            ? `expected at most ${bounds.maxBytes} bytes`
            : "the body is not well-formed UTF-8"
      }
    ])
  )
