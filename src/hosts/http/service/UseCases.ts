import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as References from "effect/References"
import * as Result from "effect/Result"
import type { Room } from "../../../application/intake/OpenRequests.js"
import type { Principal } from "../../../application/ports/Tenants.js"
import type { Caller } from "../../../application/request/Caller.js"
import { EventStream } from "../../../application/request/EventStream.js"
import type * as Failure from "../../../application/request/Failure.js"
import * as Metadata from "../../../application/request/Metadata.js"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import type { api } from "../contract/Api.js"
import { idempotencyHeader, metadataHeader, preferHeader } from "../contract/EndpointAnnotations.js"
import type { Handlers } from "../handlers/Groups.js"
import type { InFlightLimit, Ticket } from "../limits/InFlightLimit.js"
import type * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import type { Endpoint, Endpoints } from "./Endpoints.js"
import { Exchange, type Known, refuse } from "./Exchange.js"
import * as Payload from "./Payload.js"
import * as Streamed from "./Streamed.js"

/** In place of a write's own answer: it is accepted, and its caller did not want to wait for more. */
class Accepted {
  constructor(readonly requestId: string) {}
}

type UseCase<R> = (caller: Caller, request: unknown) => Effect.Effect<unknown, Failure.Failure, R>

export interface Parts {
  readonly endpoints: Endpoints
  readonly inFlight: InFlightLimit
  readonly room: Room
  readonly bounds: Payload.Bounds
  readonly long: Payload.Long
  readonly basePath: string
}

type Builder = HttpApiBuilder.Handlers<never, Record<string, HttpApiEndpoint.Top>>

/** The groups of endpoints that need a key, which was looked at: each endpoint is a use case. */
export const layers = <R>(
  contract: typeof api,
  handlers: Handlers,
  context: Context.Context<R>,
  parts: Parts
) => {
  const { basePath, endpoints, inFlight } = parts
  const call = calls(handlers as Readonly<Record<string, UseCase<R>>>, context, parts)
  const { service: _, ...groups } = contract.groups
  return Object.values(groups).map((group) =>
    HttpApiBuilder.group(
      contract as HttpApi.HttpApi<"castellan", typeof group>,
      group.identifier,
      (builder) => {
        // Of a group in general: the contract pairs each use case with the schemas of its endpoint.
        const whole: object = builder
        const raw = whole as Builder
        for (const { identifier } of Object.values(group.endpoints)) {
          const endpoint = endpoints.named(identifier)
          raw.handleRaw(identifier, ({ params, query, request }) => {
            const given: Readonly<Record<string, unknown>> = { ...Object(params), ...Object(query) }
            return Effect.flatMap(call(request, endpoint, given), (success) => {
              if (success instanceof Accepted) return Effect.succeed(accepted(success, basePath))
              if (success instanceof EventStream)
                return Streamed.answer(success, String(given.requestId), inFlight)
              // Text is made of it in a turn of the event loop of its own.
              return Effect.as(EventLoop.breathe, success)
            }).pipe(Effect.catch(refuse))
          })
        }
        return builder as never
      }
    )
  )
}

/** The answer to a write whose caller does not wait for its outcome. */
const accepted = ({ requestId }: Accepted, basePath: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { requestId, state: "pending" },
    {
      status: 202,
      headers: { location: `${basePath}/requests/${requestId}`, "preference-applied": "respond-async" }
    }
  )

/** Asks a use case, in this order: room for work, the body, the use case. `given` is what path and query say. */
const calls = <R>(
  useCases: Readonly<Record<string, UseCase<R>>>,
  context: Context.Context<R>,
  { bounds, long, room }: Parts
) => {
  const payloadOf = Payload.reader(bounds, long)
  return Effect.fnUntraced(function* (
    request: HttpServerRequest,
    endpoint: Endpoint,
    given: object
  ): Effect.fn.Return<unknown, Problem | Body.Broken> {
    const known = yield* Exchange
    const useCase = useCases[endpoint.name]
    const { principal, ticket } = known
    if (useCase === undefined || principal === null || ticket === null)
      return yield* Effect.die(new Error(`no use case for ${endpoint.name}`))
    const key = request.headers[idempotencyHeader.toLowerCase()] ?? null
    const metadata = yield* metadataOf(request)
    const early =
      endpoint.idempotent && prefersAsync(request) ? Deferred.makeUnsafe<unknown, Failure.Failure>() : null
    if (endpoint.decode !== null) yield* roomOf(room, endpoint, principal, key)
    const { bodyHash, request: read } = yield* endpoint.decode === null
      ? Payload.none(request)
      : payloadOf(request, endpoint, key !== null, early !== null)
    const caller: Caller = {
      principal,
      requestId: known.requestId,
      idempotency: key === null || bodyHash === null ? null : { key, bodyHash },
      metadata,
      onChain: (chainId) => {
        known.chainId = chainId
      },
      ...(early !== null && {
        isAsynchronous: true,
        onAccepted: (requestId) => Deferred.doneUnsafe(early, Effect.succeed(new Accepted(requestId)))
      })
    }
    // The body of an endpoint whose path has a parameter is an object without a member of its name.
    const whole = Object.keys(given).length === 0 ? read : { ...Object(read), ...given }
    const work = Effect.annotateLogs(
      Effect.suspend(() => useCase(caller, whole)),
      { requestId: known.requestId, endpoint: endpoint.path }
    )
    // The service's own context, whatever its transport has in its own.
    const own = Effect.updateContext(
      (yield* References.TracerEnabled) ? traced(work, known) : work,
      (_: Context.Context<never>) => context
    )
    if (endpoint.scope === "read") return yield* Effect.mapError(own, ErrorEnvelope.fromFailure)
    return yield* Effect.mapError(
      early === null ? detached(own, ticket) : promptly(own, ticket, early),
      ErrorEnvelope.fromFailure
    )
  })
}

/** Whether there is room for what the endpoint begins. */
const roomOf = (room: Room, { idempotent, path }: Endpoint, { accountId }: Principal, key: string | null) =>
  idempotent ? Effect.mapError(room(accountId, path, key), ErrorEnvelope.fromFailure) : Effect.void

/** Where somebody listens to spans: the work of a use case under one of its own. */
const traced = <A, E, R>(work: Effect.Effect<A, E, R>, { endpoint, method, principal, requestId }: Known) =>
  Effect.withSpan(work, `${method} ${endpoint?.path}`, {
    kind: "server",
    root: true,
    captureStackTrace: false,
    attributes: { requestId, accountId: principal?.accountId ?? null }
  })

const noMetadata = Effect.succeed({})

const metadataOf = ({ headers }: HttpServerRequest) => {
  const text = headers[metadataHeader.toLowerCase()]
  return text === undefined
    ? noMetadata
    : Effect.fromResult(
        Result.mapError(Metadata.parse(text), (message) =>
          problem("invalid_request", [{ path: metadataHeader, message }])
        )
      )
}

/** Values in quotes, which may hold what looks like another preference. */
const quoted = /"(?:[^"\\]|\\.)*"/g

/**
 * RFC 7240: a list of preferences, each with a value and parameters perhaps; what is not known is not looked at. An empty
 * value is none.
 */
const prefersAsync = ({ headers }: HttpServerRequest): boolean =>
  (headers[preferHeader.toLowerCase()] ?? "")
    .replace(quoted, (text) => (text === '""' ? "" : '"x"'))
    .split(",")
    .some((preference) => /^\s*respond-async\s*(?:=\s*)?(?:;|$)/i.test(preference))

/**
 * A write that its client can not interrupt by going away: it may have been accepted. It runs in a fiber of its own,
 * which is what a stop of the service interrupts when the drain time is over.
 */
const detached = <A, E, R>(write: Effect.Effect<A, E, R>, ticket: Ticket): Effect.Effect<A, E, R> =>
  Effect.uninterruptible(
    Effect.flatMap(Effect.forkDetach(Effect.interruptible(write)), (fiber) => {
      ticket.fiber = fiber
      return Effect.flatten(Fiber.await(fiber))
    })
  )

/** The same, answered as soon as the write is accepted or refused. Who waits for it then leaves: it goes on by itself. */
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
