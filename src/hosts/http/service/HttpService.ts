import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { RateLimit } from "../../../application/ports/RateLimit.js"
import type { Scope, Tenants } from "../../../application/ports/Tenants.js"
import type { Caller } from "../../../application/request/Caller.js"
import type * as Failure from "../../../application/request/Failure.js"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import { api } from "../contract/Api.js"
import { idempotencyHeader } from "../contract/EndpointAnnotations.js"
import type { Handlers } from "../handlers/Handlers.js"
import * as Service from "../handlers/Service.js"
import { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import * as ClientAddress from "../limits/ClientAddress.js"
import { InFlightLimit, type Ticket } from "../limits/InFlightLimit.js"
import type * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { type Answer, header, type Incoming } from "../message/HttpMessage.js"
import * as Access from "./Access.js"
import * as Cors from "./Cors.js"
import * as Pages from "./Pages.js"
import * as Payload from "./Payload.js"
import * as RequestLog from "./RequestLog.js"
import * as Routes from "./Routes.js"

/** What the operator may set. All have defaults. */
export interface Options {
  /** Longest body, bytes. Default 1 MiB. */
  readonly maxBodyBytes?: number
  /** Most elements of an array in a body. Default 256. */
  readonly maxElements?: number
  /** Most requests under way; more are answered 503. Default 512. */
  readonly maxConcurrent?: number
  /** Most requests without a valid key of one address in a minute; more are answered 429. Default 300. */
  readonly strangersPerMinute?: number
  /** Proxies whose X-Forwarded-For is believed. Default none. */
  readonly trustedProxies?: ReadonlyArray<IpAddress.Range>
  /** Web origins whose pages may use the service. Default none. */
  readonly corsOrigins?: ReadonlyArray<string>
  /** What else is served, to everybody. Default nothing. */
  readonly pages?: Pages.Pages
  /** The path under which the service stands on its server, for the OpenAPI document. Default: none. */
  readonly basePath?: string
  /** Runs when the drain time of a stop is over: tells waiters to answer with what they know. Default nothing. */
  readonly lastCall?: Effect.Effect<void>
}

/** The service, seen from its transports. */
export interface HttpService {
  /**
   * Answers one request; never fails, and has an answer for everything. Interrupting it (the client has gone) ends
   * a request that only reads; one that writes goes on to its end, since it may have been accepted.
   */
  readonly handle: (incoming: Incoming) => Effect.Effect<Answer>
  /**
   * Refuses new requests with 503 `shutting down` and waits until those under way are answered; what is left after
   * `drain` is interrupted and answered 503. `/health/live` is answered to the end.
   */
  readonly stop: (drain: Duration.DurationInput) => Effect.Effect<void>
}

/** The environment that the use cases behind the endpoints need. */
export type Requirements<H extends Handlers> = Effect.Effect.Context<ReturnType<H[keyof Handlers]>>

type Handler<R> = (caller: Caller, request: unknown) => Effect.Effect<unknown, Failure.Failure, R>

const MiB = 1024 * 1024

/** Most arrays and objects inside each other: several times what the deepest ABI tuple needs. */
const maxDepth = 64

/** JSON values of a body: the time to read it grows with them. */
const maxValues = 32_768

/** The front over the use cases in `handlers` (`Http.handlers` has the real ones). Its requirements are theirs. */
export const make = <H extends Handlers>(
  handlers: H,
  options: Options = {}
): Effect.Effect<HttpService, never, Tenants | RateLimit | Requirements<H>> =>
  Effect.map(Effect.context<Tenants | RateLimit | Requirements<H>>(), (context) => {
    const maxBytes = options.maxBodyBytes ?? MiB
    return driver(handlers, context, {
      gate: new InFlightLimit(options.maxConcurrent ?? 512, options.lastCall ?? Effect.void),
      bounds: {
        maxBytes,
        drainBytes: Math.max(maxBytes, 8 * MiB),
        maxElements: options.maxElements ?? 256,
        maxDepth,
        maxValues
      },
      strangers: new AnonymousRateLimit({ perMinute: options.strangersPerMinute ?? 300 }),
      trustedProxies: options.trustedProxies ?? [],
      origins: new Set(options.corsOrigins),
      pages: options.pages ?? new Map(),
      basePath: options.basePath ?? ""
    })
  })

/** What every request has to do with. */
interface Parts {
  readonly gate: InFlightLimit
  readonly bounds: Payload.Bounds
  readonly strangers: AnonymousRateLimit
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
  readonly origins: Cors.Origins
  readonly pages: Pages.Pages
  readonly basePath: string
}

/** What becomes known of a request on its way; for the log, and the headers of whatever the answer is. */
interface Known extends RequestLog.Entry {
  /** Where a request without a valid key is counted; null: it is not. */
  stranger: string | null
  /** One of many that are alike: it leaves no line in the log. */
  quiet: boolean
  params: Readonly<Record<string, string>>
  headers: Readonly<Record<string, string>>
}

/** On every answer. The service is no web page, and what it says is of the moment. */
const commonHeaders = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'"
}

const driver = <H extends Handlers>(
  handlers: H,
  context: Context.Context<Tenants | RateLimit | Requirements<H>>,
  { basePath, bounds, gate, origins, pages, strangers, trustedProxies }: Parts
): HttpService => {
  const table = Routes.make(api)
  const service = Service.handlers(gate, basePath)

  // The contract pairs each use case with the schema that decoded its request.
  const useCases = handlers as Readonly<Record<string, Handler<Requirements<H>>>>

  const withKey = (incoming: Incoming, route: Routes.Route, scope: Scope, known: Known, ticket: Ticket) =>
    Effect.gen(function* () {
      const apiKey = header(incoming, "x-api-key")
      const principal = yield* Access.authenticate(apiKey)
      strangers.recognise(apiKey)
      known.stranger = null
      known.accountId = principal.accountId
      const allowance = yield* Access.count(principal)
      known.headers = Access.headers(allowance)
      const refusal = Access.refusal(principal, allowance, scope) ?? unsupported(incoming, route)
      if (refusal !== null) return yield* Effect.fail(refusal)
      const useCase = useCases[route.name]
      if (useCase === undefined) return yield* Effect.dieMessage(`no use case for ${route.name}`)
      const { bodyHash, request } =
        route.decode === null
          ? { request: known.params, bodyHash: null }
          : yield* Payload.read(incoming, bounds, route, idempotencyKey(incoming) !== null)
      const key = idempotencyKey(incoming)
      const idempotency = key === null || bodyHash === null ? null : { key, bodyHash }
      const onChain = (chainId: bigint) => {
        known.chainId = chainId
      }
      const run = Effect.suspend(() =>
        useCase({ principal, requestId: known.requestId, idempotency, onChain }, request)
      ).pipe(
        Effect.annotateLogs({ requestId: known.requestId, endpoint: route.path }),
        Effect.withSpan(`${incoming.method} ${route.path}`, {
          kind: "server",
          root: true,
          attributes: { requestId: known.requestId, accountId: principal.accountId }
        })
      )
      return yield* Effect.mapError(scope === "read" ? run : detached(run, ticket), ErrorEnvelope.fromFailure)
    })

  const insideGate = (incoming: Incoming, route: Routes.Route, scope: Scope, known: Known) =>
    Effect.withFiberRuntime<unknown, Problem | Body.Broken, Tenants | RateLimit | Requirements<H>>(
      (fiber) => {
        const ticket = gate.enter(fiber)
        if (typeof ticket === "string")
          return Effect.fail(problem(ticket, [], { headers: ErrorEnvelope.retryAfter(1) }))
        return Effect.ensuring(
          withKey(incoming, route, scope, known, ticket),
          Effect.sync(() => gate.leave(ticket))
        )
      }
    )

  const respond = (
    incoming: Incoming,
    known: Known,
    now: number
  ): Effect.Effect<Answer, Problem | Body.Broken> =>
    Effect.suspend(() => {
      const place = table.find(pathOf(incoming.target))
      const route = place === undefined ? undefined : routeOf(place, incoming.method)
      known.stranger = route?.unlimited === true ? null : ClientAddress.of(incoming, trustedProxies)
      if (known.stranger !== null && strangers.refuses(known.stranger, header(incoming, "x-api-key"), now)) {
        known.quiet = !strangers.firstRefusal(known.stranger)
        known.stranger = null
        return Effect.fail(tooMany(strangers.resetSeconds(now)))
      }
      if (place === undefined) return Pages.answer(pages, pathOf(incoming.target), incoming.method)
      const preflight = Cors.preflight(incoming, place.methods.keys(), origins)
      if (preflight !== null) return Effect.succeed(preflight)
      if (route === undefined) return Effect.fail(notAllowed(place))
      const { params } = place
      known.params = params
      known.endpoint = `${incoming.method} ${route.path}`
      const success =
        route.scope === null
          ? (service[route.name] ?? Effect.fail(problem("not_found")))
          : Effect.provide(insideGate(incoming, route, route.scope, known), context)
      return Effect.flatMap(success, (value) =>
        Effect.map(
          EventLoop.drive(() => route.encode(value)),
          (body) => ({
            status: 200,
            headers: { "content-type": route.contentType, ...Service.headers[route.name] },
            body: Either.getOrThrowWith(
              body,
              (places) => new Error(`the answer of ${route.name} does not fit the contract: ${places}`)
            )
          })
        )
      )
    })

  /** The answer to whatever stopped the request. Null: nobody is left to answer. */
  const afterCause = (
    cause: Cause.Cause<Problem | Body.Broken>,
    known: Known
  ): Effect.Effect<Problem | null> =>
    Effect.gen(function* () {
      const failure = Option.getOrNull(Cause.failureOption(cause))
      if (failure !== null && "code" in failure) return failure
      const broken =
        failure !== null || (Cause.isInterruptedOnly(cause) && (gate.stopping || (yield* interrupted)))
      if (!broken) return yield* Effect.as(RequestLog.defect(known, cause), problem("internal_error"))
      return gate.stopping ? problem("shutting_down", [], { headers: ErrorEnvelope.retryAfter(1) }) : null
    })

  const handle = (incoming: Incoming): Effect.Effect<Answer> =>
    Effect.gen(function* () {
      const began = yield* Clock.currentTimeMillis
      const known: Known = {
        requestId: globalThis.crypto.randomUUID(),
        accountId: null,
        endpoint: null,
        chainId: null,
        status: null,
        code: null,
        millis: 0,
        headers: {},
        params: {},
        stranger: null,
        quiet: false
      }
      const exit = yield* Effect.exit(Effect.interruptible(respond(incoming, known, began)))
      const problem = Exit.isSuccess(exit) ? null : yield* afterCause(exit.cause, known)
      const answer = Exit.isSuccess(exit)
        ? exit.value
        : ErrorEnvelope.answer(problem ?? clientGone, known.requestId)
      // Who could not be looked at may be no stranger.
      if (known.stranger !== null && answer.status < 500) strangers.count(known.stranger, began)
      known.status = problem === null && Exit.isFailure(exit) ? null : answer.status
      known.code = problem?.code ?? null
      known.millis = (yield* Clock.currentTimeMillis) - began
      yield* known.quiet ? RequestLog.figures(known) : RequestLog.line(known)
      return {
        ...answer,
        headers: {
          ...commonHeaders,
          ...Cors.headers(incoming, origins),
          "x-request-id": known.requestId,
          ...known.headers,
          ...answer.headers
        }
      }
    }).pipe(Effect.uninterruptible, Effect.withScheduler(EventLoop.scheduler))

  return { handle, stop: (drain) => gate.stop(drain) }
}

/**
 * Whether this fiber itself was interrupted, in a region where that has no effect: a use case that ends interrupted
 * for reasons of its own has crashed.
 */
const interrupted: Effect.Effect<boolean> = Effect.map(
  Effect.exit(Effect.interruptible(Effect.void)),
  Exit.isFailure
)

/** Never seen by anyone, but a transport that is wrong about its client still has an answer to give. */
const clientGone = problem("invalid_request", [{ path: "", message: "the request broke off" }])

const tooMany = (seconds: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: "too many requests without a valid key from this address" }],
    {
      headers: ErrorEnvelope.retryAfter(seconds)
    }
  )

/** HEAD is GET without the body, which the transport leaves out. */
const routeOf = ({ methods }: Routes.Place, method: string): Routes.Route | undefined =>
  methods.get(method) ?? (method === "HEAD" ? methods.get("GET") : undefined)

const notAllowed = ({ methods }: Routes.Place): Problem => {
  const allow = [...methods.keys(), ...(methods.has("GET") ? ["HEAD"] : [])].join(", ")
  return problem("method_not_allowed", [{ path: "", message: `expected ${allow}` }], { headers: { allow } })
}

/** 1 to 255 visible ASCII characters (decisions, 9). */
const keyShape = /^[\x21-\x7e]{1,255}$/

/** Null when there is none; what is in the header was held to its shape before. */
const idempotencyKey = (incoming: Incoming): string | null => {
  const key = header(incoming, idempotencyHeader.toLowerCase())
  return key === "" ? null : key
}

/** The path of a request target; a proxy's absolute form has scheme and host in front. */
const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?]*/i, "").replace(/\?.*$/s, "")

/** What the endpoint does not take, though it may look as if it did: it is refused, never ignored. */
const unsupported = (incoming: Incoming, route: Routes.Route): Problem | null => {
  if (incoming.headers[idempotencyHeader.toLowerCase()] !== undefined) {
    const refused = (message: string) => problem("invalid_request", [{ path: idempotencyHeader, message }])
    if (!route.idempotent) return refused("the endpoint takes no idempotency key; leave the header out")
    if (!keyShape.test(header(incoming, idempotencyHeader.toLowerCase())))
      return refused("expected 1 to 255 visible ASCII characters")
  }
  if (incoming.target.includes("?"))
    return problem("unknown_field", [{ path: "", message: "the endpoint takes no query; send a JSON body" }])
  if (route.decode === null && Payload.announced(incoming))
    return problem("invalid_request", [{ path: "", message: "the method takes no body" }])
  return null
}

/**
 * A write that its client can not interrupt by going away: it may have been accepted. It runs in a fiber of its own,
 * which is what a stop of the service interrupts when the drain time is over.
 */
const detached = <A, E, R>(write: Effect.Effect<A, E, R>, ticket: Ticket): Effect.Effect<A, E, R> =>
  Effect.uninterruptible(
    Effect.flatMap(Effect.forkDaemon(Effect.interruptible(write)), (fiber) => {
      ticket.fiber = fiber
      return Effect.flatten(Fiber.await(fiber))
    })
  )
