import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Result from "effect/Result"
import type { Room } from "../../../application/lanes/requests/Room.js"
import type { RateLimit } from "../../../application/ports/RateLimit.js"
import type { Principal, Scope, Tenants } from "../../../application/ports/Tenants.js"
import type { Caller } from "../../../application/request/Caller.js"
import type * as Failure from "../../../application/request/Failure.js"
import * as Metadata from "../../../application/request/Metadata.js"
import {
  idempotencyHeader,
  lastEventHeader,
  metadataHeader,
  preferHeader
} from "../contract/EndpointAnnotations.js"
import type { Handlers } from "../handlers/Handlers.js"
import type { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import type { InFlightLimit, Ticket } from "../limits/InFlightLimit.js"
import type * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { header, type Incoming } from "../message/HttpMessage.js"
import * as Access from "./Access.js"
import * as Payload from "./Payload.js"
import type { Route } from "./Routes.js"

/** What becomes known of a request to an endpoint that needs a key. */
export interface Known {
  readonly requestId: string
  accountId: string | null
  /** The chain that it was about, as far as that came out. */
  chainId: bigint | null
  /** Where a request without a valid key is counted; null: it is not. */
  anonymousAddress: string | null
  /** Its place among the requests under way; whoever answers it gives it back. */
  ticket: Ticket | null
  params: Readonly<Record<string, string>>
  headers: Readonly<Record<string, string>>
}

/** In place of a write's own answer: it is accepted, and its caller did not want to wait for more. */
export class Accepted {
  constructor(readonly requestId: string) {}
}

type Running = Fiber.Fiber<unknown, unknown>

/** The success of an endpoint that needs a key of this scope. */
export type Call = (
  incoming: Incoming,
  route: Route,
  scope: Scope,
  known: Known,
  fiber: Running
) => Effect.Effect<unknown, Problem | Body.Broken>

export interface Parts {
  readonly inFlight: InFlightLimit
  readonly anonymous: AnonymousRateLimit
  readonly tenants: Tenants["Service"]
  readonly limiter: RateLimit["Service"]
  readonly room: Room
  readonly bounds: Payload.Bounds
  readonly long: Payload.Long
}

type UseCase<R> = (caller: Caller, request: unknown) => Effect.Effect<unknown, Failure.Failure, R>

/** In this order: a place among the requests under way, the key, the account's limits, room for work, the body, the use case. */
export const make = <H extends Handlers, R>(
  handlers: H,
  context: Context.Context<R>,
  { bounds, inFlight, limiter, long, anonymous, room, tenants }: Parts
): Call => {
  // The contract pairs each use case with the schema that decoded its request.
  const useCases = handlers as Readonly<Record<string, UseCase<R>>>
  const payloadOf = Payload.reader(bounds, long)

  const admitted = (
    incoming: Incoming,
    route: Route,
    scope: Scope,
    known: Known,
    principal: Principal,
    ticket: Ticket,
    fiber: Running
  ): Effect.Effect<unknown, Problem | Body.Broken> => {
    const useCase = useCases[route.name]
    if (useCase === undefined) return Effect.die(new Error(`no use case for ${route.name}`))
    const key = idempotencyKey(incoming)
    const query = queryRead(incoming, route)
    if (Result.isFailure(query)) return Effect.fail(query.failure)
    const metadata = metadataOf(incoming)
    if (Result.isFailure(metadata)) return Effect.fail(metadata.failure)
    const early =
      route.idempotent && prefersAsync(incoming) ? Deferred.makeUnsafe<unknown, Failure.Failure>() : null
    const params = Object.keys(known.params).length === 0 ? null : known.params
    const run = ({ bodyHash, request }: Payload.Read) => {
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
      const whole = params === null || route.decode === null ? request : { ...Object(request), ...params }
      const work = Effect.suspend(() => useCase(caller, whole))
      // The service's own context, whatever its transport has in its own.
      const own = Effect.updateContext(
        observed(work, incoming, route, known, fiber),
        (_: Context.Context<never>) => context
      )
      const answer =
        scope === "read" ? own : early === null ? detached(own, ticket) : promptly(own, ticket, early)
      return Effect.mapError(answer, ErrorEnvelope.fromFailure)
    }
    if (route.decode === null) return Effect.flatMap(Payload.none(incoming, known.params, query.success), run)
    const payload = payloadOf(incoming, route, key !== null, early !== null)
    return Effect.flatMap(Effect.andThen(roomOf(room, route, principal, key), payload), run)
  }

  return (incoming, route, scope, known, fiber) => {
    const ticket = inFlight.enter(fiber)
    if (typeof ticket === "string")
      return Effect.fail(problem(ticket, [], { headers: ErrorEnvelope.retryAfter(1) }))
    known.ticket = ticket
    const apiKey = header(incoming, "x-api-key")
    const counted = Effect.flatMap(Access.authenticate(tenants, apiKey), (principal) => {
      anonymous.recognise(apiKey)
      known.anonymousAddress = null
      known.accountId = principal.accountId
      return Effect.flatMap(Access.count(limiter, principal), (allowance) => {
        known.headers = Access.headers(allowance)
        const refusal = Access.refusal(principal, allowance, scope) ?? unsupported(incoming, route)
        if (refusal !== null) return Effect.fail(refusal)
        return admitted(incoming, route, scope, known, principal, ticket, fiber)
      })
    })
    return Effect.map(counted, (success) => {
      inFlight.leave(ticket)
      return success
    })
  }
}

/** Whether there is room for what the endpoint begins. */
const roomOf = (room: Room, { idempotent, path }: Route, { accountId }: Principal, key: string | null) =>
  idempotent ? Effect.mapError(room(accountId, path, key), ErrorEnvelope.fromFailure) : Effect.void

/** The work of a use case with its request in log lines and, where somebody listens to spans, under one of its own. */
const observed = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  { method }: Incoming,
  { path }: Route,
  { accountId, requestId }: Known,
  fiber: Running
): Effect.Effect<A, E, R> => {
  const logged = Effect.annotateLogs(work, { requestId, endpoint: path })
  return fiber.getRef(References.TracerEnabled)
    ? Effect.withSpan(logged, `${method} ${path}`, {
        kind: "server",
        root: true,
        captureStackTrace: false,
        attributes: { requestId, accountId }
      })
    : logged
}

/** 1 to 255 visible ASCII characters (decisions, 9). */
const keyShape = /^[\x21-\x7e]{1,255}$/

/** Null when there is none; what is in the header was held to its shape before. */
const idempotencyKey = (incoming: Incoming): string | null => {
  const key = header(incoming, idempotencyHeaderName)
  return key === "" ? null : key
}

const metadataHeaderName = metadataHeader.toLowerCase()

const noMetadata = Result.succeed({})

const metadataOf = (incoming: Incoming) =>
  incoming.headers[metadataHeaderName] === undefined
    ? noMetadata
    : Result.mapError(Metadata.parse(header(incoming, metadataHeaderName)), (message) =>
        problem("invalid_request", [{ path: metadataHeader, message }])
      )

/** What stands behind the question mark of the target. */
const queryOf = ({ target }: Incoming): string =>
  target.includes("?") ? target.replace(/^[^?]*\?/s, "") : ""

const noQuery = Result.succeed({})

/** What the query asks for. The header that says after which event a stream goes on comes before it, and is named where it is wrong. */
const queryRead = (incoming: Incoming, { query, streams }: Route) => {
  if (query === null) return noQuery
  const after = streams ? header(incoming, lastEventHeader.toLowerCase()) : ""
  if (after === "") return query(queryOf(incoming))
  const params = new URLSearchParams(queryOf(incoming))
  params.set("after", after)
  return Result.mapError(query(params.toString()), (refused) => ({
    ...refused,
    details: refused.details.map((detail) =>
      detail.path === "after" ? { ...detail, path: lastEventHeader } : detail
    )
  }))
}

/** Values in quotes, which may hold what looks like another preference. */
const quoted = /"(?:[^"\\]|\\.)*"/g

/**
 * RFC 7240: a list of preferences, each with a value and parameters perhaps; what is not known is not looked at. An empty
 * value is none.
 */
const prefersAsync = (incoming: Incoming): boolean =>
  header(incoming, preferHeader.toLowerCase())
    .replace(quoted, (text) => (text === '""' ? "" : '"x"'))
    .split(",")
    .some((preference) => /^\s*respond-async\s*(?:=\s*)?(?:;|$)/i.test(preference))

/** As transports name it. */
const idempotencyHeaderName = idempotencyHeader.toLowerCase()

/** What the endpoint does not take, though it may look as if it did: it is refused, never ignored. */
const unsupported = (incoming: Incoming, route: Route): Problem | null => {
  if (incoming.headers[idempotencyHeaderName] !== undefined) {
    const refused = (message: string) => problem("invalid_request", [{ path: idempotencyHeader, message }])
    if (!route.idempotent) return refused("the endpoint takes no idempotency key; leave the header out")
    if (!keyShape.test(header(incoming, idempotencyHeaderName)))
      return refused("expected 1 to 255 visible ASCII characters")
  }
  if (incoming.headers[metadataHeaderName] !== undefined && !route.idempotent)
    return problem("invalid_request", [
      { path: metadataHeader, message: "the endpoint takes no metadata; leave the header out" }
    ])
  if (route.query === null && incoming.target.includes("?")) {
    const instead = route.decode === null ? "" : "; send a JSON body"
    return problem("unknown_field", [{ path: "", message: `the endpoint takes no query${instead}` }])
  }
  if (route.decode === null && Payload.isKnownToFollow(incoming)) return Payload.noneTaken
  return null
}

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
