import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import { EventStream } from "../../../application/endpoints/operations/EventStream.js"
import * as Metadata from "../../../application/endpoints/operations/Metadata.js"
import type * as Failure from "../../../application/failures/Failure.js"
import type { Room } from "../../../application/intake/OpenRequests.js"
import * as Span from "../../../application/observe/Span.js"
import type { Caller } from "../../../application/request/Caller.js"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import {
  idempotencyHeader,
  ifMatchHeader,
  metadataHeader,
  preferHeader
} from "../contract/EndpointAnnotations.js"
import type { InFlightLimit, Ticket } from "../limits/InFlightLimit.js"
import type * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Endpoint } from "./Endpoints.js"
import * as Exchange from "./Exchange.js"
import type { Handlers } from "./Groups.js"
import * as Payload from "./Payload.js"
import * as Query from "./Query.js"
import * as Streamed from "./Streamed.js"

/**
 * Runs the use case of an endpoint that `Answering` has found.
 *
 * Gotchas: a write may have been accepted, so it runs on when its client leaves.
 */

/** Replaces a write's response: the write is accepted, and the caller does not wait. */
class Accepted {
  constructor(readonly requestId: string) {}
}

type UseCase<R> = (caller: Caller, request: unknown) => Effect.Effect<unknown, Failure.Failure, R>

export interface Parts {
  readonly inFlight: InFlightLimit
  readonly room: Room
  readonly bounds: Payload.Bounds
  readonly long: Payload.Long
  readonly basePath: string
}

/** The response to a write whose caller does not wait for its outcome. */
const accepted = ({ requestId }: Accepted, basePath: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { requestId, state: "pending" },
    {
      status: 202,
      headers: { location: `${basePath}/requests/${requestId}`, "preference-applied": "respond-async" }
    }
  )

/** Runs use cases. Checks, in this order: path and query, open work of the account, body. */
export const make = <R>(handlers: Handlers, context: Context.Context<R>, parts: Parts) => {
  const useCases = handlers as Readonly<Record<string, UseCase<R>>>
  const payloadOf = Payload.reader(parts.bounds, parts.long)
  return (
    request: HttpServerRequest,
    endpoint: Endpoint,
    known: Exchange.Known,
    params: Readonly<Record<string, string>>
  ): Effect.Effect<unknown, Problem | Body.Broken> => {
    const query = Query.read(request, endpoint)
    if (Result.isFailure(query)) return Effect.fail(query.failure)
    const metadata = metadataOf(request)
    if (Result.isFailure(metadata)) return Effect.fail(metadata.failure)
    const ifMatch = ifMatchOf(request, endpoint)
    if (Result.isFailure(ifMatch)) return Effect.fail(ifMatch.failure)
    const { principal, ticket } = known
    const useCase = useCases[endpoint.name]
    if (useCase === undefined || principal === null || ticket === null)
      return Effect.die(new Error(`no use case for ${endpoint.name}`))
    const key = request.headers[idempotencyHeader.toLowerCase()] ?? null
    const early =
      endpoint.idempotent && prefersAsync(request) ? Deferred.makeUnsafe<unknown, Failure.Failure>() : null
    const reading =
      endpoint.decode === null
        ? Payload.none(request)
        : payloadOf(request, endpoint, key !== null, early !== null)
    const admitted = endpoint.idempotent
      ? Effect.andThen(
          Effect.mapError(parts.room(principal.accountId, endpoint.path, key), ErrorEnvelope.fromFailure),
          reading
        )
      : reading
    const given = { ...params, ...query.success }
    return Effect.flatMap(admitted, ({ bodyHash, request: read }) => {
      const caller: Caller = {
        principal,
        requestId: known.requestId,
        arrivedAt: known.began,
        idempotency: key === null || bodyHash === null ? null : { key, bodyHash },
        metadata: metadata.success,
        ...ifMatch.success,
        onChain: (chainId) => {
          known.chainId = chainId
        },
        ...(early !== null && {
          isAsynchronous: true,
          onAccepted: (requestId) => Deferred.doneUnsafe(early, Effect.succeed(new Accepted(requestId)))
        })
      }
      // Path parameters and body members never share a name.
      const whole = Object.keys(given).length === 0 ? read : { ...Object(read), ...given }
      const work = inside(
        context,
        Effect.suspend(() => useCase(caller, whole)),
        known
      )
      const answer =
        endpoint.scope === "read"
          ? work
          : early === null
            ? detach(work, ticket)
            : promptly(work, ticket, early)
      return Effect.flatMap(Effect.mapError(answer, ErrorEnvelope.fromFailure), (success) => {
        if (success instanceof Accepted) return Effect.succeed(accepted(success, parts.basePath))
        if (success instanceof EventStream)
          return Streamed.answer(success, params.requestId ?? "", known, parts.inFlight)
        // Encodes the response in a separate turn of the event loop.
        return Effect.as(EventLoop.breathe, success)
      })
    })
  }
}

/** Runs work in the service's context instead of the transport's, with a span when a tracer is installed. */
const inside = <A, E, R>(
  context: Context.Context<R>,
  work: Effect.Effect<A, E, R>,
  { endpoint, method, principal, requestId }: Exchange.Known
): Effect.Effect<A, E> => {
  const own = Exchange.note(context, { requestId, endpoint: endpoint?.path })
  const span = Span.named(`${method} ${endpoint?.path}`, {
    kind: "server",
    root: true,
    attributes: { requestId, accountId: principal?.accountId ?? null }
  })
  return Effect.updateContext(span(work), (_: Context.Context<never>) => own)
}

const metadataOf = ({ headers }: HttpServerRequest): Result.Result<typeof Metadata.schema.Type, Problem> => {
  const text = headers[metadataHeader.toLowerCase()]
  return text === undefined
    ? Result.succeed({})
    : Result.mapError(Metadata.parse(text), (message) =>
        problem("invalid_request", [{ path: metadataHeader, message }])
      )
}

const ifMatchOf = (
  { headers }: HttpServerRequest,
  { versioned }: Endpoint
): Result.Result<Pick<Caller, "ifMatch">, Problem> => {
  const text = versioned ? headers[ifMatchHeader.toLowerCase()] : undefined
  if (text === undefined) return Result.succeed({})
  const [, version] = /^"(0|[1-9][0-9]{0,14})"$/.exec(text) ?? []
  return version === undefined
    ? Result.fail(
        problem("invalid_request", [
          { path: ifMatchHeader, message: 'expected one version in quotes, for example "7"' }
        ])
      )
    : Result.succeed({ ifMatch: Number(version) })
}

/** Quoted values, which may contain the text of another preference. */
const quoted = /"(?:[^"\\]|\\.)*"/g

/**
 * RFC 7240: a list of preferences with optional values and parameters; unknown ones are ignored. An empty value counts as
 * absent.
 */
const prefersAsync = ({ headers }: HttpServerRequest): boolean =>
  (headers[preferHeader.toLowerCase()] ?? "")
    .replace(quoted, (text) => (text === '""' ? "" : '"x"'))
    .split(",")
    .some((preference) => /^\s*respond-async\s*(?:=\s*)?(?:;|$)/i.test(preference))

/**
 * Runs a write that survives its client, since it may have been accepted. It runs in its own fiber, which a stop of the
 * service interrupts after the drain time.
 */
const detach = <A, E, R>(write: Effect.Effect<A, E, R>, ticket: Ticket): Effect.Effect<A, E, R> =>
  Effect.uninterruptible(
    Effect.flatMap(Effect.forkDetach(Effect.interruptible(write)), (fiber) => {
      ticket.fiber = fiber
      return Effect.flatten(Fiber.await(fiber))
    })
  )

/** Like `detach`, but answers on acceptance or refusal. It then stops waiting; the accepted write continues by itself. */
const promptly = <A, E, R>(
  write: Effect.Effect<A, E, R>,
  ticket: Ticket,
  early: Deferred.Deferred<A, E>
): Effect.Effect<A, E, R> =>
  Effect.uninterruptible(
    Effect.flatMap(
      Effect.forkDetach(Deferred.into(Effect.interruptible(write), early), { uninterruptible: true }),
      (fiber) => {
        ticket.fiber = fiber
        return Effect.ensuring(
          Deferred.await(early),
          Effect.sync(() => fiber.interruptUnsafe())
        )
      }
    )
  )
