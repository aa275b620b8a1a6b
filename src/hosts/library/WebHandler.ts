import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { Config } from "../config/Config.js"
import * as ErrorEnvelope from "../http/message/ErrorEnvelope.js"
import type { ListenError } from "../http/server/Server.js"
import type { HttpService } from "../http/service/HttpService.js"
import * as JsonLog from "../service/JsonLog.js"
import * as Service from "../service/Service.js"
import type { StartError } from "../Wiring.js"

/** Answers one request; never rejects once the service has started. */
export type Handler = (request: Request) => Promise<Response>

export interface Options {
  /** Path of the service on the host, for example `/wallets`. Default: all paths. */
  readonly basePath?: string
  /** Client address of the request's connection; null: unknown, and not counted by address. Default: null. */
  readonly remoteAddress?: (request: Request) => string | null
}

export interface WebHandlerOptions extends Options {
  /** Receives the log's lines, each a JSON object. Default: standard output. */
  readonly log?: (line: string) => void
}

export interface WebHandler {
  readonly handler: Handler
  /** Resolves when the service accepts requests; rejects when it cannot start, and every request then gets 503. */
  readonly ready: Promise<void>
  /**
   * Stops gracefully: refuses new requests, answers those in flight within the drain time, then ends engine and stores.
   * Resolves when all have ended; later requests get 503.
   */
  readonly dispose: () => Promise<void>
}

/** Path and query of a target, relative to the base path; empty, and so unknown, outside it. */
const below = (url: string, basePath: string): string => {
  const target = url.replace(/#.*$/s, "")
  if (!target.startsWith(basePath)) return ""
  const rest = target.slice(basePath.length)
  return rest === "" || rest.startsWith("/") || rest.startsWith("?") ? rest : ""
}

/** The service as a fetch handler for its host. */
export const handlerOf = (
  app: HttpService["app"],
  { basePath = "", remoteAddress = () => null }: Options,
  context: Context.Context<never>
): Handler => {
  const here = Effect.updateService(app, HttpServerRequest, (request) =>
    request.modify({
      url: below(request.url, basePath),
      remoteAddress: Option.fromNullishOr(remoteAddress(request.source as Request))
    })
  )
  // Use cases create the spans.
  const quiet = Context.add(context, HttpMiddleware.TracerDisabledWhen, () => true)
  return HttpEffect.toWebHandlerWith<never, HttpServerRequest>(quiet)(here)
}

/** The service of a configuration as a fetch handler, until the scope closes. */
export const make = (
  config: Config,
  { basePath: given = "", ...options }: Options = {}
): Effect.Effect<Handler, StartError | ListenError, Scope.Scope> => {
  // Routers also write base paths with a trailing slash, and `/` for the whole host.
  const basePath = given.replace(/\/+$/, "")
  return Service.make(config, { basePath }, (service) =>
    Effect.gen(function* () {
      const handler = handlerOf(service.app, { ...options, basePath }, yield* Effect.context<never>())
      yield* Effect.addFinalizer(() => service.stop(config.limits.drainMillis))
      return handler
    })
  )
}

const logger = (log: WebHandlerOptions["log"]): Layer.Layer<never> =>
  log === undefined ? JsonLog.layer : Logger.layer([JsonLog.make(log)])

const notStarted = (): Response =>
  HttpServerResponse.toWeb(
    ErrorEnvelope.response(ErrorEnvelope.problem("unavailable"), globalThis.crypto.randomUUID())
  )

/**
 * The service of a configuration for any host with the fetch API: a framework, another runtime, a test. It starts
 * immediately and resumes an earlier process's open work before the first request.
 */
export const toWebHandler = (config: Config, { log, ...options }: WebHandlerOptions = {}): WebHandler => {
  const scope = Effect.runSync(Scope.make())
  const started = make(config, options).pipe(
    Effect.tapCause((cause) => Effect.logError("service start failed", cause)),
    Effect.provide(logger(log)),
    Scope.provide(scope),
    Effect.runPromiseExit
  )
  const ready = started.then((exit) => {
    if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  })
  // Prevents an unhandled rejection; callers may await `ready`.
  ready.catch(() => undefined)
  let disposed: Promise<void> | null = null
  return {
    handler: async (request) => {
      const exit = await started
      return Exit.isSuccess(exit) ? exit.value(request) : notStarted()
    },
    ready,
    dispose: () => {
      disposed ??= started.then(() => Effect.runPromise(Scope.close(scope, Exit.void)))
      return disposed
    }
  }
}
