import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import * as Json from "../../../domain/json/Json.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import type { Steps } from "../../../domain/primitives/Steps.js"
import * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Endpoint } from "./Endpoints.js"

/** Length from which on a body is large, in UTF-16 units: no honest one has many mistakes. */
const largeBody = 65_536

/** Bounds on a request body. */
export interface Bounds extends Body.Limits, Json.Bounds {}

const contentType = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?;?$/i

/** By its shape: hosts have classes of their own for it. */
const isFetchRequest = (source: unknown): source is Request =>
  typeof source === "object" && source !== null && "arrayBuffer" in source && "signal" in source

/** True when a body is announced, which may be empty. Of that of a fetch request no header need tell. */
const announced = ({ headers, source }: HttpServerRequest): boolean =>
  isFetchRequest(source)
    ? source.body !== null
    : (headers["transfer-encoding"] ?? "") !== "" || !["", "0"].includes(headers["content-length"] ?? "")

/** Whether the length of the body is known before it is read. */
const hasLength = ({ headers }: HttpServerRequest): boolean =>
  /^[0-9]+$/.test(headers["content-length"] ?? "")

/** Whether the headers tell of bytes. */
export const isKnownToFollow = (request: HttpServerRequest): boolean =>
  announced(request) && hasLength(request)

export const noneTaken = problem("invalid_request", [{ path: "", message: "the method takes no body" }])

/** Longest time that the body of a fetch request may take: as long as the server of node gives a request. */
const longest = "60 seconds"

/** Reads the body to its end, or until the collector wants no more. */
export const collect = (
  request: HttpServerRequest,
  collector: Body.Collector
): Effect.Effect<void, Body.Broken> => {
  if (!announced(request)) return Effect.void
  const read = Effect.flatMap(Body.Reader, (read) => read(request, (chunk) => collector.take(chunk))).pipe(
    Effect.catchDefect(Effect.fail),
    Effect.mapError(() => new Body.Broken())
  )
  return isFetchRequest(request.source)
    ? Effect.timeoutOrElse(read, { duration: longest, orElse: () => Effect.fail(new Body.Broken()) })
    : read
}

/** A request as its endpoint wants it, and what its bytes were. */
export interface Read {
  readonly request: unknown
  /** keccak256 of the body as it was sent; null when it was not asked for. */
  readonly bodyHash: Bytes32 | null
}

/**
 * Nothing, where a method takes no body. Some servers, Next is one, give every request that may have a body a stream: an
 * empty one is none.
 */
export const none = (request: HttpServerRequest): Effect.Effect<Read, Problem | Body.Broken> => {
  const read = { request: {}, bodyHash: null }
  if (!announced(request)) return Effect.succeed(read)
  const collector = new Body.Collector({ maxBytes: 0, drainBytes: 0 })
  return Effect.flatMap(collect(request, collector), () =>
    collector.empty ? Effect.succeed(read) : Effect.fail(noneTaken)
  )
}

/**
 * The decoded request of an endpoint. Checked, in this order: the media type, the length as counted, the encoding,
 * the syntax, the bounds of the shape, the endpoint's own schema.
 */
export const read = (
  request: HttpServerRequest,
  bounds: Bounds,
  endpoint: Pick<Endpoint, "bodyOptional" | "decode">,
  hashed: boolean
): Effect.Effect<Read, Problem | Body.Broken> => {
  if (endpoint.bodyOptional && !announced(request)) return Effect.succeed(nothing)
  const refusal = unreadable(request)
  if (refusal !== null) return Effect.fail(refusal)
  const collector = new Body.Collector(bounds)
  return Effect.flatMap(collect(request, collector), () =>
    endpoint.bodyOptional && collector.empty
      ? Effect.succeed(nothing)
      : Effect.flatMap(
          EventLoop.drive(() => interpret(collector, bounds, endpoint.decode, hashed)),
          Effect.fromResult
        )
  )
}

/** Bounds of a request with a long list, whose caller does not wait for more than that it is accepted. */
export interface Long {
  readonly maxBytes: number
  readonly maxElements: number
  readonly maxValues: number
}

/** Bodies beyond the usual bound that are read and decoded at once, of all callers. */
const longBodies = 4

/**
 * Reads bodies; one that may be long within the bounds of long ones. It is longer than usual only if its headers say so:
 * what is counted as it comes has the usual bound.
 */
export const reader = (bounds: Bounds, long: Long) => {
  const places = Semaphore.makeUnsafe(longBodies)
  return (
    request: HttpServerRequest,
    endpoint: Endpoint,
    hashed: boolean,
    mayBeLong: boolean
  ): Effect.Effect<Read, Problem | Body.Broken> => {
    const { longList } = endpoint
    if (longList === null) return read(request, bounds, endpoint, hashed)
    if (!mayBeLong) return Effect.mapError(read(request, bounds, endpoint, hashed), withLong(longList, long))
    const listed = {
      ...bounds,
      maxValues: long.maxValues,
      longest: { name: longList, maxElements: Math.max(bounds.maxElements, long.maxElements) }
    }
    if (!hasLength(request) || Number(request.headers["content-length"]) <= bounds.maxBytes)
      return read(request, listed, endpoint, hashed)
    const maxBytes = Math.max(bounds.maxBytes, long.maxBytes)
    return Effect.flatMap(
      places.withPermitsIfAvailable(1)(read(request, { ...listed, maxBytes }, endpoint, hashed)),
      Option.match({
        onNone: () => Effect.fail(problem("overloaded", [], { headers: ErrorEnvelope.retryAfter(1) })),
        onSome: Effect.succeed
      })
    )
  }
}

/** A body that is refused for its size alone, where a caller who does not wait may send more. */
const withLong =
  (list: string, { maxBytes, maxElements }: Long) =>
  (failure: Problem | Body.Broken): Problem | Body.Broken => {
    if (failure instanceof Body.Broken) return failure
    const [detail] = failure.details
    const isOfList = detail?.path === list && /^expected at most [0-9]+ elements$/.test(detail.message)
    if (detail === undefined || (!isOfList && failure.code !== "body_too_large")) return failure
    const most = isOfList ? `${maxElements} elements` : `${maxBytes} bytes`
    return {
      ...failure,
      details: [{ ...detail, message: `${detail.message}; with Prefer: respond-async, ${most}` }]
    }
  }

function* interpret(
  collector: Body.Collector,
  bounds: Bounds,
  decode: Endpoint["decode"],
  hashed: boolean
): Steps<Result.Result<Read, Problem>> {
  const sent = text(collector, bounds)
  if (Result.isFailure(sent)) return Result.fail(sent.failure)
  yield
  const parsed = yield* Json.parseSteps(sent.success, bounds)
  if (Result.isFailure(parsed)) {
    const { kind, message, path } = parsed.failure
    return Result.fail(problem(codes[kind], [{ path, message }]))
  }
  yield
  const isLarge = sent.success.length > largeBody
  const request = decode === null ? Result.succeed(parsed.success) : decode(parsed.success, isLarge)
  if (Result.isFailure(request)) return Result.fail(request.failure)
  yield
  const bodyHash = hashed ? yield* Keccak.hashTextSteps(sent.success) : null
  return Result.succeed({ request: request.success, bodyHash })
}

const codes = {
  malformed: "invalid_json",
  name: "invalid_json",
  number: "invalid_request",
  bounds: "invalid_request"
} as const

const nothing: Read = { request: {}, bodyHash: Keccak.hashText("") }

const unreadable = ({ headers }: HttpServerRequest): Problem | null => {
  if (!contentType.test((headers["content-type"] ?? "").trim()))
    return refused("Content-Type", "expected application/json, in UTF-8")
  const encoding = (headers["content-encoding"] ?? "").toLowerCase()
  if (encoding !== "" && encoding !== "identity")
    return refused("Content-Encoding", "the body must not be compressed")
  return null
}

const refused = (path: string, message: string): Problem =>
  problem("invalid_content_type", [{ path, message }])

const text = (collector: Body.Collector, bounds: Bounds): Result.Result<string, Problem> =>
  Result.mapError(collector.text(), (code) =>
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
