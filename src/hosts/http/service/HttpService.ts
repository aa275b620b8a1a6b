import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Room } from "../../../application/lanes/requests/Room.js"
import { RateLimit } from "../../../application/ports/RateLimit.js"
import { Tenants } from "../../../application/ports/Tenants.js"
import { EventStream } from "../../../application/request/EventStream.js"
import * as Settings from "../../../application/request/Settings.js"
import * as StoreFailure from "../../../application/request/StoreFailure.js"
import type * as IpAddress from "../../../domain/net/IpAddress.js"
import { api } from "../contract/Api.js"
import * as SwaggerUi from "../docs/SwaggerUi.js"
import type { Handlers } from "../handlers/Handlers.js"
import * as Service from "../handlers/Service.js"
import { AnonymousRateLimit } from "../limits/AnonymousRateLimit.js"
import * as ClientAddress from "../limits/ClientAddress.js"
import { InFlightLimit } from "../limits/InFlightLimit.js"
import { StreamLimit } from "../limits/StreamLimit.js"
import type * as Body from "../message/Body.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import { type Answer, header, type Incoming } from "../message/HttpMessage.js"
import * as Pages from "../message/Pages.js"
import * as ServerSentEvents from "../message/ServerSentEvents.js"
import * as Answers from "./Answers.js"
import * as Cors from "./Cors.js"
import * as EndpointCall from "./EndpointCall.js"
import * as RequestId from "./RequestId.js"
import * as RequestLog from "./RequestLog.js"
import * as Routes from "./Routes.js"

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
  readonly handle: (incoming: Incoming) => Effect.Effect<Answer>
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

/** The front over the use cases in `handlers` (`Http.handlers` has the real ones). Its requirements are theirs. */
export const make = <H extends Handlers>(
  handlers: H,
  options: Options = {}
): Effect.Effect<HttpService, never, Tenants | RateLimit | Requirements<H>> =>
  Effect.map(Effect.context<Tenants | RateLimit | Requirements<H>>(), (context) => {
    const maxBytes = options.maxBodyBytes ?? MiB
    const inFlight = new InFlightLimit(options.maxConcurrent ?? 512, options.lastCall ?? Effect.void)
    const anonymous = new AnonymousRateLimit({ perMinute: options.anonymousPerMinute ?? 300 })
    return driver({
      inFlight,
      ready: options.ready ?? Effect.succeed(true),
      anonymous,
      streams: new StreamLimit(options.maxStreams ?? 1_024, options.maxStreamsPerAccount ?? 64),
      call: EndpointCall.make(handlers, context, {
        inFlight,
        anonymous,
        tenants: Context.get(context, Tenants),
        limiter: Context.get(context, RateLimit),
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
      }),
      trustedProxies: options.trustedProxies ?? [],
      origins: new Set(options.corsOrigins),
      pages: new Map([...SwaggerUi.pages, ...(options.pages ?? [])]),
      basePath: options.basePath ?? ""
    })
  })

/** What every request has to do with. */
interface Parts {
  readonly inFlight: InFlightLimit
  readonly ready: Effect.Effect<boolean>
  readonly call: EndpointCall.Call
  readonly anonymous: AnonymousRateLimit
  readonly streams: StreamLimit
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
  readonly origins: Cors.Origins
  readonly pages: Pages.Pages
  readonly basePath: string
}

/** What becomes known of a request on its way; for the log, and the headers of whatever the answer is. */
interface Known extends RequestLog.Entry, EndpointCall.Known {
  /** One of many that are alike: it leaves no line in the log. */
  quiet: boolean
}

const begin = (now: number): Known => ({
  requestId: RequestId.make(now),
  accountId: null,
  endpoint: null,
  chainId: null,
  status: null,
  code: null,
  millis: 0,
  headers: {},
  params: {},
  ticket: null,
  anonymousAddress: null,
  quiet: false
})

type Running = Fiber.Fiber<unknown, unknown>

const driver = ({
  basePath,
  call,
  inFlight,
  origins,
  pages,
  ready,
  anonymous,
  streams,
  trustedProxies
}: Parts): HttpService => {
  const table = Routes.make(api)
  const service = Service.handlers(inFlight, ready, basePath)

  /** The answer to a request; what is done before the first wait is one step of the fiber. */
  const respond = (
    incoming: Incoming,
    known: Known,
    now: number,
    fiber: Running
  ): Effect.Effect<Answer, Problem | Body.Broken> => {
    const path = Routes.pathOf(incoming.target)
    const place = table.find(path)
    const route = place === undefined ? undefined : Routes.routeOf(place, incoming.method)
    known.anonymousAddress = route?.unlimited === true ? null : ClientAddress.of(incoming, trustedProxies)
    if (
      known.anonymousAddress !== null &&
      anonymous.refuses(known.anonymousAddress, header(incoming, "x-api-key"), now)
    ) {
      known.quiet = !anonymous.firstRefusal(known.anonymousAddress)
      known.anonymousAddress = null
      return Effect.fail(Answers.tooMany(anonymous.resetSeconds(now)))
    }
    if (place === undefined) return Pages.answer(pages, path, incoming.method)
    const preflight = Cors.preflight(incoming, place.methods.keys(), origins)
    if (preflight !== null) return Effect.succeed(preflight)
    if (route === undefined) return Effect.fail(Answers.notAllowed(place))
    known.params = place.params
    known.endpoint = `${incoming.method} ${route.path}`
    const success =
      route.scope === null
        ? (service[route.name] ?? Effect.fail(problem("not_found")))
        : call(incoming, route, route.scope, known, fiber)
    return Effect.flatMap(success, (value) => {
      if (value instanceof EndpointCall.Accepted) return Effect.succeed(Answers.accepted(value, basePath))
      return value instanceof EventStream ? streamed(value, known, fiber) : Answers.encoded(route, value)
    })
  }

  const streamed = (
    { events }: EventStream,
    known: Known,
    fiber: Running
  ): Effect.Effect<Answer, Problem> => {
    const accountId = known.accountId ?? ""
    if (events === null) return Effect.succeed(ServerSentEvents.over)
    if (!streams.admits(accountId)) return Effect.fail(Answers.tooManyStreams(streams.mostOfAccount))
    // The client of a stream that breaks off resumes it; why it did is for the operator alone.
    const whole = Stream.catchCause(events, (cause) =>
      Cause.hasInterruptsOnly(cause) ? Stream.empty : Stream.fromEffectDrain(RequestLog.defect(known, cause))
    )
    const text = ServerSentEvents.text(known.params.requestId ?? "", whole)
    // With the loggers and the clock of its request, whoever reads it.
    const bounded = Stream.provideContext(streams.bounded(accountId, text), fiber.context)
    return Effect.succeed(ServerSentEvents.answer(bounded))
  }

  /** The answer to whatever stopped the request, a failure apart. Null: nobody is left to answer. */
  const afterCause = (
    cause: Cause.Cause<Problem | Body.Broken>,
    known: Known
  ): Effect.Effect<Problem | null> =>
    Effect.gen(function* () {
      const broken =
        Option.isSome(Cause.findErrorOption(cause)) ||
        (Cause.hasInterruptsOnly(cause) && (inFlight.stopping || (yield* interrupted)))
      if (!broken)
        return yield* Effect.as(
          RequestLog.defect(known, cause),
          StoreFailure.isIn(cause)
            ? problem("unavailable", [], { headers: ErrorEnvelope.retryAfter(1) })
            : problem("internal_error")
        )
      return inFlight.stopping ? problem("shutting_down", [], { headers: ErrorEnvelope.retryAfter(1) }) : null
    })

  /** Writes down what became of the request, and completes its answer. */
  const conclude = (
    incoming: Incoming,
    known: Known,
    answer: Answer,
    times: { readonly began: number; readonly now: number },
    fiber: Running
  ): Effect.Effect<Answer> => {
    if (known.ticket !== null) inFlight.leave(known.ticket)
    // An account's key that could not be looked up is not counted as none.
    if (known.anonymousAddress !== null && answer.status < 500)
      anonymous.count(known.anonymousAddress, times.began)
    known.millis = times.now - times.began
    RequestLog.figures(known, fiber.context)
    const whole = {
      ...answer,
      headers: {
        ...Answers.commonHeaders,
        ...(origins.size === 0 ? null : Cors.headers(incoming, origins)),
        "x-request-id": known.requestId,
        ...known.headers,
        ...answer.headers
      }
    }
    return known.quiet ? Effect.succeed(whole) : Effect.as(RequestLog.line(known), whole)
  }

  const answered = (incoming: Incoming, fiber: Running, clock: Clock.Clock): Effect.Effect<Answer> => {
    const began = clock.currentTimeMillisUnsafe()
    const known = begin(began)
    const end = (answer: Answer) =>
      conclude(incoming, known, answer, { began, now: clock.currentTimeMillisUnsafe() }, fiber)
    const refuse = (problem: Problem): Effect.Effect<Answer> => {
      const answer = ErrorEnvelope.answer(problem, known.requestId)
      known.status = answer.status
      known.code = problem.code
      return end(answer)
    }
    return Effect.matchCauseEffect(
      Effect.interruptible(Effect.suspend(() => respond(incoming, known, began, fiber))),
      {
        onSuccess: (answer) => {
          known.status = answer.status
          return end(answer)
        },
        onFailure: (cause) => {
          const failure = Cause.findErrorOption(cause)
          if (Option.isSome(failure) && "code" in failure.value) return refuse(failure.value)
          return Effect.flatMap(afterCause(cause, known), (problem) =>
            problem === null
              ? end(ErrorEnvelope.answer(Answers.clientGone, known.requestId))
              : refuse(problem)
          )
        }
      }
    )
  }

  const handle = (incoming: Incoming): Effect.Effect<Answer> =>
    Effect.withFiber((fiber) =>
      Effect.uninterruptible(Clock.clockWith((clock) => answered(incoming, fiber, clock)))
    )

  return {
    handle,
    stop: (drain) => Effect.andThen(streams.stop, inFlight.stop(drain)),
    underWay: () => inFlight.size
  }
}

/**
 * Whether this fiber itself was interrupted, in a region where that has no effect: a use case that ends interrupted
 * for reasons of its own has crashed.
 */
const interrupted: Effect.Effect<boolean> = Effect.map(
  Effect.exit(Effect.interruptible(Effect.void)),
  Exit.isFailure
)
