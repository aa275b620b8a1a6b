import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Room } from "../../../application/intake/OpenRequests.js"
import { Refusals } from "../../../application/ports/operator/Refusals.js"
import type { RateLimit } from "../../../application/ports/RateLimit.js"
import type { Tenants } from "../../../application/ports/Tenants.js"
import * as Settings from "../../../application/request/Settings.js"
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import { api } from "../contract/Api.js"
import * as SwaggerUi from "../docs/SwaggerUi.js"
import { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import { InFlightLimit } from "../limits/InFlightLimit.js"
import type * as Pages from "../message/Pages.js"
import * as Answering from "./Answering.js"
import * as Authentication from "./Authentication.js"
import * as Endpoints from "./Endpoints.js"
import type { Handlers } from "./Groups.js"
import * as Public from "./Public.js"
import * as UseCases from "./UseCases.js"

/** Operator settings; each has a default. */
export interface Options {
  /** Longest body, in bytes. Default 1 MiB. */
  readonly maxBodyBytes?: number
  /** Most elements of an array in a body. Default 256. */
  readonly maxElements?: number
  /** Most operations of an /execute whose caller does not wait. Default 10,000. */
  readonly maxBatchElements?: number
  /** Most requests in flight; more get 503. Default 512. */
  readonly maxConcurrent?: number
  /** Most concurrent event streams per account. Default 64. */
  readonly maxStreamsPerAccount?: number
  /** Most requests without a valid key per address and minute; more get 429. Default 300. */
  readonly anonymousPerMinute?: number
  /** Proxies whose X-Forwarded-For is trusted. Default none. */
  readonly trustedProxies?: ReadonlyArray<IpAddress.Range>
  /** Web origins whose pages may use the service. Default none. */
  readonly corsOrigins?: ReadonlyArray<string>
  /** Further pages, served without a key. Default none. */
  readonly pages?: Pages.Pages
  /** Path of the service on its server, for the OpenAPI document. Default none. */
  readonly basePath?: string
  /** Whether the service's dependencies respond, for `/health/ready`. Called by anyone, at any rate. Default: true. */
  readonly ready?: Effect.Effect<boolean>
  /** Checks the limit of an account's open work before a body is read. Default: the use cases check it. */
  readonly room?: Room
  /** Whether the node of each chain answers, by decimal chain id, for `/health/ready`. Default: no chain. */
  readonly nodes?: Public.Parts["nodes"]
  /** Runs after the drain time of a stop: lets waiting handlers answer with their current state. Default: nothing. */
  readonly lastCall?: Effect.Effect<void>
}

/** The service as its transports see it. */
export interface HttpService {
  /**
   * Answers one request and never fails. When the client goes, the transport interrupts it: a read stops, a write
   * continues, since it may have been accepted.
   */
  readonly app: Answering.App
  /**
   * Refuses new requests with 503 `shutting down` and waits for those in flight; after `drain` the remaining ones are
   * interrupted and get 503. `/health/live` responds to the end.
   */
  readonly stop: (drain: Duration.Input) => Effect.Effect<void>
  readonly underWay: () => number
}

/** Environment of the use cases behind the endpoints. */
export type Requirements<H extends Handlers> = Effect.Services<ReturnType<H[keyof Handlers]>>

const MiB = 1024 * 1024

/** Serves the use cases in `handlers` (in production `Groups.handlers`) over HTTP. Requires their environment. */
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
        streams: 1_024,
        streamsOfAccount: options.maxStreamsPerAccount ?? 64
      },
      options.lastCall ?? Effect.void
    )
    const anonymous = new AnonymousRateLimit({ perMinute: options.anonymousPerMinute ?? 300 })
    const admit = yield* Authentication.make(inFlight, anonymous)
    const open = Public.make({
      basePath,
      inFlight,
      ready: options.ready ?? Effect.succeed(true),
      nodes: options.nodes ?? (() => ({}))
    })
    const useCase = UseCases.make(handlers, context, {
      inFlight,
      basePath,
      room: options.room ?? (() => Effect.void),
      bounds: {
        maxBytes,
        drainBytes: Math.max(maxBytes, 8 * MiB),
        maxElements: options.maxElements ?? 256,
        // Several times the depth of the deepest ABI tuple.
        maxDepth: 64,
        // Each name is compared with the others.
        maxMembers: 4_096,
        // Reading time grows with the number of values.
        maxValues: 32_768,
        decimals: Settings.decimals
      },
      long: { maxBytes: 8 * MiB, maxValues: 98_304, maxElements: options.maxBatchElements ?? 10_000 }
    })
    const parts = {
      endpoints: Endpoints.make(api, new Map([...SwaggerUi.pages, ...(options.pages ?? [])])),
      inFlight,
      anonymous,
      refused: (yield* Refusals).note,
      origins: new Set(options.corsOrigins),
      trustedProxies: options.trustedProxies ?? []
    }
    return {
      app: Answering.make(parts, (request, endpoint, known, params) =>
        endpoint.needsKey
          ? Effect.flatMap(admit(request, endpoint, known), () => useCase(request, endpoint, known, params))
          : (open[endpoint.name] ?? Effect.die(new Error(`${endpoint.name}: no handler`)))
      ),
      stop: (drain) => inFlight.stop(drain),
      underWay: () => inFlight.size
    }
  })
