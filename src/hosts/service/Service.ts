import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { Submissions } from "../../application/endpoints/Submissions.js"
import { Following } from "../../application/lanes/worker/Lanes.js"
import { Health } from "../../application/observe/Health.js"
import { OpJournal } from "../../application/ports/journal/OpJournal.js"
import { Lifetime } from "../../application/runtime/Lifetime.js"
import type { Config } from "../config/Config.js"
import * as Playground from "../http/playground/Playground.js"
import type { ListenError } from "../http/server/Server.js"
import * as Groups from "../http/service/Groups.js"
import * as HttpService from "../http/service/HttpService.js"
import * as Readiness from "../http/service/Readiness.js"
import * as Inspections from "../Inspections.js"
import * as Wiring from "../Wiring.js"

export interface Options extends Wiring.Seams {
  /** Path of the service on another server. Default: none. */
  readonly basePath?: string
  /** Checks nodes, contracts and keys in the background and logs their problems. */
  readonly inspect?: boolean
}

/** Whether a tracer is installed. Each span costs a stack trace, even without one. */
const isTraced: Effect.Effect<boolean> = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

/** Logs the work that a stop leaves open. */
const logStop = (
  front: HttpService.HttpService,
  ports: Context.Context<Following | Submissions>
): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logInfo("stopping"), {
    requests: front.underWay(),
    acceptedRequests: Context.get(ports, Submissions).accepted(),
    transactions: Context.get(ports, Following).monitor.underWay()
  })

/** The service over its ports, with the transport that `serve` creates. */
const build = <A, E, R>(
  config: Config,
  { basePath, inspect, ...seams }: Options,
  serve: (service: HttpService.HttpService) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | ListenError | Wiring.StartError, R | Scope.Scope> =>
  Effect.gen(function* () {
    const { edge, limits, operations } = config
    const { admin } = operations
    const ports = yield* Layer.build(Wiring.layer(config, seams))
    const ready = yield* Readiness.make(Context.get(ports, OpJournal))
    if (admin !== null) {
      const [Admin, Live] = yield* Effect.promise(() =>
        Promise.all([import("../console/Admin.js"), import("../console/Live.js")])
      )
      const { url } = yield* Admin.serve({
        ...admin,
        linked: config.profile === "development",
        data: yield* Live.data(config, ports, ready)
      })
      yield* Effect.annotateLogs(Effect.logInfo("operator port open"), { url })
    }
    if (inspect === true) yield* Effect.provide(Inspections.start(config), ports)
    const service = HttpService.make(Groups.handlers, {
      maxBodyBytes: limits.bodyBytes,
      maxElements: limits.arrayElements,
      maxBatchElements: limits.batchElements,
      maxConcurrent: limits.concurrentRequests,
      anonymousPerMinute: limits.anonymousPerMinute,
      trustedProxies: edge.trustedProxies,
      corsOrigins: edge.corsOrigins,
      ...(config.profile === "development" && { pages: Playground.pages }),
      ...(basePath !== undefined && { basePath }),
      ready,
      nodes: () => Readiness.nodes(Context.get(ports, Health)),
      room: Context.get(ports, Submissions).room,
      lastCall: Context.get(ports, Lifetime).stopWaiting
    })
    // Service and transport share a context, so that requests need not switch it.
    return yield* Effect.provide(
      Effect.flatMap(service, (front) =>
        Effect.tap(serve(front), () => Effect.addFinalizer(() => logStop(front, ports)))
      ),
      ports
    )
  })

/**
 * The whole service of a configuration except its transport, which `serve` creates. When the scope closes, the transport
 * ends first, then engine and stores.
 */
export const make = <A, E, R>(
  config: Config,
  options: Options,
  serve: (service: HttpService.HttpService) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | ListenError | Wiring.StartError, R | Scope.Scope> =>
  Effect.gen(function* () {
    const { telemetry } = config.operations
    let isServing = false
    // Runs last, after engine and stores have ended.
    yield* Effect.addFinalizer(() => (isServing ? Effect.logInfo("stopped") : Effect.void))
    // First: earlier work would have no tracer.
    const tracer =
      telemetry === null
        ? Context.empty()
        : yield* Layer.build((yield* Effect.promise(() => import("./Otlp.js"))).layer(telemetry))
    const served = yield* Effect.flatMap(isTraced, (isTraced) =>
      Effect.withTracerEnabled(build(config, options, serve), isTraced)
    ).pipe(Effect.provide(tracer))
    isServing = true
    return served
  })
