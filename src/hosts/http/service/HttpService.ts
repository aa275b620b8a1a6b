import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Room } from "../../../application/lanes/requests/Room.js"
import type { RateLimit } from "../../../application/ports/RateLimit.js"
import type { Tenants } from "../../../application/ports/Tenants.js"
import * as Settings from "../../../application/request/Settings.js"
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import { api } from "../contract/Api.js"
import * as SwaggerUi from "../docs/SwaggerUi.js"
import type { Handlers } from "../handlers/Groups.js"
import { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import { InFlightLimit } from "../limits/InFlightLimit.js"
import type * as Pages from "../message/Pages.js"
import * as Answering from "./Answering.js"
import * as Authentication from "./Authentication.js"
import * as Endpoints from "./Endpoints.js"
import * as Public from "./Public.js"
import * as UseCases from "./UseCases.js"

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

/** The front over the use cases in `handlers` (`Groups.handlers` has the real ones). Its requirements are theirs. */
export const make = <H extends Handlers>(
  handlers: H,
  options: Options = {}
): Effect.Effect<HttpService, never, Tenants | RateLimit | Requirements<H>> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<Tenants | RateLimit | Requirements<H>>()
    const { basePath = "", maxBodyBytes: maxBytes = MiB } = options
    const inFlight = new InFlightLimit(
      {
        requests: options.maxConcurrent ?? 512,
        streams: options.maxStreams ?? 1_024,
        streamsOfAccount: options.maxStreamsPerAccount ?? 64
      },
      options.lastCall ?? Effect.void
    )
    const anonymous = new AnonymousRateLimit({ perMinute: options.anonymousPerMinute ?? 300 })
    const admit = yield* Authentication.make(inFlight, anonymous)
    const open = Public.make({ basePath, inFlight, ready: options.ready ?? Effect.succeed(true) })
    const useCase = UseCases.make(handlers, context, {
      inFlight,
      basePath,
      room: options.room ?? (() => Effect.void),
      bounds: {
        maxBytes,
        drainBytes: Math.max(maxBytes, 8 * MiB),
        maxElements: options.maxElements ?? 256,
        // Several times what the deepest ABI tuple needs.
        maxDepth: 64,
        // Each name is compared with the others.
        maxMembers: 4_096,
        // The time to read a body grows with them.
        maxValues: 32_768,
        decimals: Settings.decimals
      },
      long: { maxBytes: 8 * MiB, maxValues: 98_304, maxElements: options.maxBatchElements ?? 10_000 }
    })
    const parts = {
      endpoints: Endpoints.make(api, new Map([...SwaggerUi.pages, ...(options.pages ?? [])])),
      inFlight,
      anonymous,
      origins: new Set(options.corsOrigins),
      trustedProxies: options.trustedProxies ?? []
    }
    return {
      app: Answering.make(parts, (request, endpoint, known, params) =>
        endpoint.needsKey
          ? Effect.flatMap(admit(request, endpoint, known), () => useCase(request, endpoint, known, params))
          : (open[endpoint.name] ?? Effect.die(new Error(`nobody answers ${endpoint.name}`)))
      ),
      stop: (drain) => inFlight.stop(drain),
      underWay: () => inFlight.size
    }
  })
