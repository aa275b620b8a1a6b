import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import * as Json from "../../../domain/json/Json.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Endpoint } from "./Endpoints.js"

/** Bounds on a request body. */
export interface Bounds extends Body.Limits, Json.Bounds {}

/** Bounds of a request with a long list, whose caller does not wait for the outcome. */
export interface Long {
  readonly maxBytes: number
  readonly maxElements: number
  readonly maxValues: number
}

/** A decoded request and the hash of its body. */
export interface Read {
  readonly request: unknown
  /** keccak256 of the body as sent; null when not requested. */
  readonly bodyHash: Bytes32 | null
}

type Reading = Effect.Effect<Read, Problem | Body.Broken>

/** Whether the headers announce a body, which may be empty. A fetch request may have one without headers. */
const announced = ({ headers, source }: HttpServerRequest): boolean =>
  "arrayBuffer" in source
    ? (source as Request).body !== null
    : (headers["transfer-encoding"] ?? "") !== "" || !["", "0"].includes(headers["content-length"] ?? "")

/** Whether the headers state the body's length. */
const hasLength = ({ headers }: HttpServerRequest): boolean =>
  /^[0-9]+$/.test(headers["content-length"] ?? "")

export const isKnownToFollow = (request: HttpServerRequest): boolean =>
  announced(request) && hasLength(request)

const problemAt = (code: Problem["code"], path: string, message: string): Problem =>
  problem(code, [{ path, message }])

export const noneTaken = problemAt("invalid_request", "", "the method takes no body")

const noBytes = new Uint8Array()

/** The bytes of the body; null when it is too long. */
export const bytes = (
  request: HttpServerRequest,
  limits: Body.Limits
): Effect.Effect<Uint8Array | null, Body.Broken> =>
  announced(request) ? Effect.flatMap(Body.Reader, (read) => read(request, limits)) : Effect.succeed(noBytes)

/**
 * Reads the body of a method that takes none. Some servers (Next, for example) attach a stream to every such request, so an
 * empty stream passes.
 */
export const none = (request: HttpServerRequest): Reading =>
  Effect.flatMap(bytes(request, { maxBytes: 0, drainBytes: 0 }), (sent) =>
    sent?.length === 0 ? Effect.succeed({ request: {}, bodyHash: null }) : Effect.fail(noneTaken)
  )

const nothing: Read = { request: {}, bodyHash: Keccak.hashText("") }

/**
 * Decodes the request of an endpoint. Checks, in this order: media type, counted length, encoding, syntax, shape bounds,
 * the endpoint's schema.
 */
const read = (request: HttpServerRequest, bounds: Bounds, endpoint: Endpoint, hashed: boolean): Reading => {
  if (endpoint.bodyOptional && !announced(request)) return Effect.succeed(nothing)
  const refusal = unreadable(request)
  if (refusal !== null) return Effect.fail(refusal)
  return Effect.flatMap(bytes(request, bounds), (sent): Reading => {
    if (sent === null)
      return Effect.fail(problemAt("body_too_large", "", `expected at most ${bounds.maxBytes} bytes`))
    if (endpoint.bodyOptional && sent.length === 0) return Effect.succeed(nothing)
    return interpret(sent, bounds, endpoint, hashed)
  })
}

const contentType = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?;?$/i

const unreadable = ({ headers }: HttpServerRequest): Problem | null => {
  if (!contentType.test((headers["content-type"] ?? "").trim()))
    return problemAt("invalid_content_type", "Content-Type", "expected application/json, in UTF-8")
  const encoding = (headers["content-encoding"] ?? "").toLowerCase()
  return encoding === "" || encoding === "identity"
    ? null
    : problemAt("invalid_content_type", "Content-Encoding", "the body must not be compressed")
}

/** Length of a large body, in bytes: no honest body of this size has many faults. */
const largeBody = 65_536

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const codes = {
  malformed: "invalid_json",
  name: "invalid_json",
  number: "invalid_request",
  bounds: "invalid_request"
} as const

const unfit = ({ kind, message, path }: Json.Refusal): Problem => problemAt(codes[kind], path, message)

/** Yields to other work between the steps. */
const interpret = (sent: Uint8Array, bounds: Bounds, { decode }: Endpoint, hashed: boolean): Reading => {
  let text = ""
  const steps: ReadonlyArray<(value: unknown) => Result.Result<unknown, Problem>> = [
    () =>
      Result.try({
        try: () => {
          text = utf8.decode(sent)
        },
        catch: () => problemAt("invalid_json", "", "the body is not well-formed UTF-8")
      }),
    () => Result.mapError(Json.read(text, bounds), unfit),
    (parsed) => {
      const refusal = Json.refusal(text, bounds)
      return refusal === null ? Result.succeed(parsed) : Result.fail(unfit(refusal))
    },
    (parsed) => decode?.(parsed, sent.length > largeBody) ?? Result.succeed(parsed),
    (request) => Result.succeed({ request, bodyHash: hashed ? Keccak.hashText(text) : null })
  ]
  let read: Result.Result<unknown, Problem> = Result.succeed(null)
  return Effect.flatMap(
    EventLoop.map(steps, (step) => {
      read = Result.flatMap(read, step)
    }),
    () => Effect.fromResult(read as Result.Result<Read, Problem>)
  )
}

/** Most long bodies that are read and decoded concurrently, of all callers. */
const longBodies = 4

/**
 * Reads bodies. A possibly long body gets the long bounds only if its headers state the length; a streamed body keeps the
 * usual bound.
 */
export const reader = (bounds: Bounds, long: Long) => {
  const places = Semaphore.makeUnsafe(longBodies)
  return (request: HttpServerRequest, endpoint: Endpoint, hashed: boolean, mayBeLong: boolean): Reading => {
    const { longList } = endpoint
    if (longList === null) {
      const { maxBytes = bounds.maxBytes, ...rest } = endpoint.bounds ?? {}
      const own = { ...bounds, ...rest, maxBytes: Math.min(bounds.maxBytes, maxBytes) }
      return read(request, own, endpoint, hashed)
    }
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

/** Adds the long bounds to a refusal for size when a caller that does not wait may send more. */
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
