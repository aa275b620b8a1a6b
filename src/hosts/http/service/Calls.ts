import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as References from "effect/References"
import * as Result from "effect/Result"
import type { Room } from "../../../application/lanes/requests/Room.js"
import type { Principal } from "../../../application/ports/Tenants.js"
import type { Caller } from "../../../application/request/Caller.js"
import type * as Failure from "../../../application/request/Failure.js"
import * as Metadata from "../../../application/request/Metadata.js"
import { idempotencyHeader, metadataHeader, preferHeader } from "../contract/EndpointAnnotations.js"
import type { Handlers } from "../handlers/Handlers.js"
import type * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { Exchange, type Known, type Ticket } from "../message/Exchange.js"
import type { Endpoint } from "./Endpoints.js"
import * as Payload from "./Payload.js"

/** In place of a write's own answer: it is accepted, and its caller did not want to wait for more. */
export class Accepted {
  constructor(readonly requestId: string) {}
}

/** The success of an endpoint that needs a key, which was looked at. `given` is what its path and its query say. */
export type Call = (
  request: HttpServerRequest,
  endpoint: Endpoint,
  given: object
) => Effect.Effect<unknown, Problem | Body.Broken>

export interface Parts {
  readonly room: Room
  readonly bounds: Payload.Bounds
  readonly long: Payload.Long
}

type UseCase<R> = (caller: Caller, request: unknown) => Effect.Effect<unknown, Failure.Failure, R>

/** In this order: room for work, the body, the use case. */
export const make = <H extends Handlers, R>(
  handlers: H,
  context: Context.Context<R>,
  { bounds, long, room }: Parts
): Call => {
  // The contract pairs each use case with the schema that decoded its request.
  const useCases = handlers as Readonly<Record<string, UseCase<R>>>
  const payloadOf = Payload.reader(bounds, long)

  return (request, endpoint, given) =>
    Effect.withFiber((fiber) =>
      Effect.flatMap(Exchange, (known) => {
        const useCase = useCases[endpoint.name]
        const { principal, ticket } = known
        if (useCase === undefined || principal === null || ticket === null)
          return Effect.die(new Error(`no use case for ${endpoint.name}`))
        const key = request.headers[idempotencyHeader.toLowerCase()] ?? null
        const metadata = metadataOf(request)
        if (Result.isFailure(metadata)) return Effect.fail(metadata.failure)
        const early =
          endpoint.idempotent && prefersAsync(request)
            ? Deferred.makeUnsafe<unknown, Failure.Failure>()
            : null
        const run = ({ bodyHash, request: read }: Payload.Read) => {
          const caller: Caller = {
            principal,
            requestId: known.requestId,
            idempotency: key === null || bodyHash === null ? null : { key, bodyHash },
            metadata: metadata.success,
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
          const work = Effect.suspend(() => useCase(caller, whole))
          // The service's own context, whatever its transport has in its own.
          const own = Effect.updateContext(
            observed(work, known, endpoint, fiber),
            (_: Context.Context<never>) => context
          )
          const answer =
            endpoint.scope === "read"
              ? own
              : early === null
                ? detached(own, ticket)
                : promptly(own, ticket, early)
          return Effect.mapError(answer, ErrorEnvelope.fromFailure)
        }
        if (endpoint.decode === null) return Effect.flatMap(Payload.none(request), run)
        const payload = payloadOf(request, endpoint, key !== null, early !== null)
        return Effect.flatMap(Effect.andThen(roomOf(room, endpoint, principal, key), payload), run)
      })
    )
}

/** Whether there is room for what the endpoint begins. */
const roomOf = (room: Room, { idempotent, path }: Endpoint, { accountId }: Principal, key: string | null) =>
  idempotent ? Effect.mapError(room(accountId, path, key), ErrorEnvelope.fromFailure) : Effect.void

/** The work of a use case with its request in log lines and, where somebody listens to spans, under one of its own. */
const observed = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  { method, principal, requestId }: Known,
  { path }: Endpoint,
  fiber: Fiber.Fiber<unknown, unknown>
): Effect.Effect<A, E, R> => {
  const logged = Effect.annotateLogs(work, { requestId, endpoint: path })
  return fiber.getRef(References.TracerEnabled)
    ? Effect.withSpan(logged, `${method} ${path}`, {
        kind: "server",
        root: true,
        captureStackTrace: false,
        attributes: { requestId, accountId: principal?.accountId ?? null }
      })
    : logged
}

const noMetadata = Result.succeed({})

const metadataOf = ({ headers }: HttpServerRequest) => {
  const text = headers[metadataHeader.toLowerCase()]
  return text === undefined
    ? noMetadata
    : Result.mapError(Metadata.parse(text), (message) =>
        problem("invalid_request", [{ path: metadataHeader, message }])
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
