import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Room } from "../../../application/lanes/requests/Room.js"
import type { RateLimit } from "../../../application/ports/RateLimit.js"
import type { Tenants } from "../../../application/ports/Tenants.js"
import { EventStream } from "../../../application/request/EventStream.js"
import * as Settings from "../../../application/request/Settings.js"
import * as EventLoop from "../../../application/runtime/EventLoop.js"
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import * as Contract from "../contract/Api.js"
import { lastEventHeader } from "../contract/EndpointAnnotations.js"
import * as SwaggerUi from "../docs/SwaggerUi.js"
import type { Handlers } from "../handlers/Handlers.js"
import * as Service from "../handlers/Service.js"
import { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import * as ClientAddress from "../limits/ClientAddress.js"
import { InFlightLimit } from "../limits/InFlightLimit.js"
import { StreamLimit } from "../limits/StreamLimit.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { Exchange, refuse } from "../message/Exchange.js"
import * as Pages from "../message/Pages.js"
import * as ServerSentEvents from "../message/ServerSentEvents.js"
import * as Answering from "./Answering.js"
import * as Authentication from "./Authentication.js"
import * as Calls from "./Calls.js"
import * as Cors from "./Cors.js"
import * as Endpoints from "./Endpoints.js"
import * as RequestLog from "./RequestLog.js"

/** What the operator may set. All have defaults. */
export interface Options {
  /** Longest body, bytes. Default 1 MiB. */
  readonly maxBodyBytes?: number
  /** Most elements of an array in a body. Default 256. */
  readonly maxElements?: number
  /** Most operations of an /execute whose caller does not wait. Default 10,000. */
  readonly maxBatchElements?: number
  /** Most requests under way; more are answered 503. Default 512. */
  readonly maxConcurrent?: number
  /** Most streams of events at once. Default 1,024. */
  readonly maxStreams?: number
  /** Most streams of events of one account at once. Default 64. */
  readonly maxStreamsPerAccount?: number
  /** Most requests without a valid key of one address in a minute; more are answered 429. Default 300. */
  readonly anonymousPerMinute?: number
  /** Proxies whose X-Forwarded-For is believed. Default none. */
  readonly trustedProxies?: ReadonlyArray<IpAddress.Range>
  /** Web origins whose pages may use the service. Default none. */
  readonly corsOrigins?: ReadonlyArray<string>
  /** What else is served, to everybody. Default nothing. */
  readonly pages?: Pages.Pages
  /** The path under which the service stands on its server, for the OpenAPI document. Default: none. */
  readonly basePath?: string
  /** Whether what the service needs answers, for `/health/ready`. Anybody may ask, however often. Default: it does. */
  readonly ready?: Effect.Effect<boolean>
  /** Whether more work is begun of an account. Default: the use cases say so, once a request is read. */
  readonly room?: Room
  /** Runs when the drain time of a stop is over: tells waiters to answer with what they know. Default nothing. */
  readonly lastCall?: Effect.Effect<void>
}

/** The service, seen from its transports. */
export interface HttpService {
  /**
   * Answers one request; never fails, and has an answer for everything. Interrupting it (the client has gone) ends
   * a request that only reads; one that writes goes on to its end, since it may have been accepted.
   */
  readonly app: Answering.App
  /**
   * Refuses new requests with 503 `shutting down` and waits until those under way are answered; what is left after
   * `drain` is interrupted and answered 503. `/health/live` is answered to the end.
   */
  readonly stop: (drain: Duration.Input) => Effect.Effect<void>
  /** How many requests are under way. */
  readonly underWay: () => number
}

/** The environment that the use cases behind the endpoints need. */
export type Requirements<H extends Handlers> = Effect.Services<ReturnType<H[keyof Handlers]>>

const MiB = 1024 * 1024

/** Most arrays and objects inside each other: several times what the deepest ABI tuple needs. */
const maxDepth = 64

/** JSON values of a body: the time to read it grows with them. */
const maxValues = 32_768

/** The same of a request with a long list, of up to so many bytes. */
const long = { maxBytes: 8 * MiB, maxValues: 262_144 }

/** What a query does not name is refused, as in a body. */
const api = Contract.api.annotate(HttpApi.QueryParseOptions, { onExcessProperty: "error", errors: "all" })

/** Paths are as they are written, and as long as headers may be. */
const paths = Layer.succeed(HttpRouter.RouterConfig, {
  caseSensitive: true,
  ignoreDuplicateSlashes: false,
  ignoreTrailingSlash: false,
  maxParamLength: 65_536
})

/** The front over the use cases in `handlers` (`Http.handlers` has the real ones). Its requirements are theirs. */
export const make = <H extends Handlers>(
  handlers: H,
  options: Options = {}
): Effect.Effect<HttpService, never, Tenants | RateLimit | Requirements<H>> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<Tenants | RateLimit | Requirements<H>>()
    const { basePath = "", maxBodyBytes: maxBytes = MiB } = options
    const endpoints = Endpoints.make(api)
    const inFlight = new InFlightLimit(options.maxConcurrent ?? 512, options.lastCall ?? Effect.void)
    const anonymous = new AnonymousRateLimit({ perMinute: options.anonymousPerMinute ?? 300 })
    const streams = new StreamLimit(options.maxStreams ?? 1_024, options.maxStreamsPerAccount ?? 64)
    const origins: Cors.Origins = new Set(options.corsOrigins)
    const call = Calls.make(handlers, context, {
      room: options.room ?? (() => Effect.void),
      bounds: {
        maxBytes,
        drainBytes: Math.max(maxBytes, 8 * MiB),
        maxElements: options.maxElements ?? 256,
        maxDepth,
        maxValues,
        decimals: Settings.decimals
      },
      long: { ...long, maxElements: options.maxBatchElements ?? 10_000 }
    })
    const service = Service.layer({ inFlight, ready: options.ready ?? Effect.succeed(true), basePath })
    const routes = HttpApiBuilder.layer(api).pipe(
      Layer.provide([service, ...useCases(call, endpoints, streams, basePath)]),
      Layer.provide(Authentication.layer({ endpoints, inFlight, anonymous })),
      // Never that of a server whose layers are made around this.
      Layer.provideMerge(Layer.fresh(HttpRouter.layer)),
      Layer.provide([HttpServer.layerServices, paths])
    )
    const router = Context.get(yield* Effect.scoped(Layer.build(routes)), HttpRouter.HttpRouter)
    const edge = edgeOf({
      endpoints,
      anonymous,
      origins,
      trustedProxies: options.trustedProxies ?? [],
      pages: new Map([...SwaggerUi.pages, ...(options.pages ?? [])])
    })
    return {
      app: Effect.scoped(router.asHttpEffect()).pipe(
        edge,
        Answering.middleware({ inFlight, anonymous, origins })
      ),
      stop: (drain) => Effect.andThen(streams.stop, inFlight.stop(drain)),
      underWay: () => inFlight.size
    }
  })

type Builder = HttpApiBuilder.Handlers<never, Record<string, HttpApiEndpoint.Top>>

/** The groups whose endpoints are use cases. */
const useCases = (
  call: Calls.Call,
  endpoints: Endpoints.Endpoints,
  streams: StreamLimit,
  basePath: string
) => {
  const { service: _, ...groups } = api.groups
  return Object.values(groups).map((group) =>
    HttpApiBuilder.group(api, group.identifier, (builder) => {
      // Of a group in general: the contract pairs each use case with the schemas of its endpoint.
      const handlers: object = builder
      for (const { identifier } of Object.values(group.endpoints)) {
        const endpoint = endpoints.named(identifier)
        ;(handlers as Builder).handleRaw(identifier, ({ params, query, request }) => {
          const given: Readonly<Record<string, unknown>> = { ...Object(params), ...Object(query) }
          return Effect.flatMap(call(request, endpoint, given), (success) => {
            if (success instanceof Calls.Accepted) return Effect.succeed(accepted(success, basePath))
            return success instanceof EventStream
              ? streamed(success, String(given.requestId), streams)
              : // Text is made of it in a turn of the event loop of its own.
                Effect.as(EventLoop.breathe, success)
          }).pipe(Effect.catch(refuse))
        })
      }
      return handlers as never
    })
  )
}

/** The answer to a write whose caller does not wait for its outcome. */
const accepted = ({ requestId }: Calls.Accepted, basePath: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { requestId, state: "pending" },
    {
      status: 202,
      headers: { location: `${basePath}/requests/${requestId}`, "preference-applied": "respond-async" }
    }
  )

const streamed = (
  { events }: EventStream,
  requestId: string,
  streams: StreamLimit
): Effect.Effect<HttpServerResponse.HttpServerResponse, Problem> =>
  Effect.withFiber((fiber) =>
    Effect.flatMap(Exchange, (known) => {
      const accountId = known.principal?.accountId ?? ""
      if (events === null) return Effect.succeed(ServerSentEvents.over)
      if (!streams.admits(accountId)) return Effect.fail(tooManyStreams(streams.mostOfAccount))
      // The client of a stream that breaks off resumes it; why it did is for the operator alone.
      const whole = Stream.catchCause(events, (cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Stream.empty
          : Stream.fromEffectDrain(RequestLog.defect(known, cause))
      )
      const text = ServerSentEvents.text(requestId, whole)
      // With the loggers and the clock of its request, whoever reads it.
      const bounded = Stream.provideContext(streams.bounded(accountId, text), fiber.context)
      return Effect.succeed(ServerSentEvents.answer(bounded))
    })
  )

interface Edge {
  readonly endpoints: Endpoints.Endpoints
  readonly anonymous: AnonymousRateLimit
  readonly origins: Cors.Origins
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
  readonly pages: Pages.Pages
}

/** What is answered before the router is asked: strangers that ask too often, other methods, pages that are no endpoints. */
const edgeOf =
  ({ anonymous, endpoints, origins, pages, trustedProxies }: Edge) =>
  (router: Answering.App<unknown>): Answering.App<unknown> =>
    Effect.flatMap(Exchange, (known) =>
      Effect.flatMap(HttpServerRequest, (request) => {
        const path = request.url.replace(/\?.*$/s, "")
        const place = endpoints.find(path)
        const endpoint = place === undefined ? undefined : Endpoints.of(place, request.method)
        const address = endpoint?.unlimited === true ? null : ClientAddress.of(request, trustedProxies)
        if (address !== null && anonymous.refuses(address, request.headers["x-api-key"] ?? "", known.began)) {
          known.isQuiet = !anonymous.firstRefusal(address)
          return refuse(tooMany(anonymous.resetSeconds(known.began)))
        }
        known.anonymousAddress = address
        if (place === undefined) return Effect.catch(Pages.answer(pages, path, request.method), refuse)
        const preflight = Cors.preflight(request, place.keys(), origins)
        if (preflight !== null) return Effect.succeed(preflight)
        if (endpoint === undefined) return refuse(notAllowed(place))
        known.endpoint = endpoint
        const after = request.headers[lastEventHeader.toLowerCase()] ?? ""
        if (!endpoint.streams || after === "") return router
        // The header says after which event the stream goes on, and comes before the query.
        const query = new URLSearchParams(request.url.slice(path.length))
        query.set("after", after)
        return Effect.provideService(router, HttpServerRequest, request.modify({ url: `${path}?${query}` }))
      })
    )

const tooMany = (seconds: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: "too many requests without a valid key from this address" }],
    { headers: ErrorEnvelope.retryAfter(seconds) }
  )

const tooManyStreams = (most: number): Problem =>
  problem(
    "rate_limited",
    [{ path: "", message: `too many streams of events are open; an account may have ${most}` }],
    { headers: ErrorEnvelope.retryAfter(10) }
  )

const notAllowed = (place: Endpoints.Place): Problem => {
  const allow = [...place.keys(), ...(place.has("GET") ? ["HEAD"] : [])].join(", ")
  return problem("method_not_allowed", [{ path: "", message: `expected ${allow}` }], { headers: { allow } })
}
