import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import * as Observed from "../../application/observe/Observed.js"
import { AuditLog } from "../../application/ports/AuditLog.js"
import { Journal } from "../../application/ports/journal/Journal.js"
import * as EventLoop from "../../application/runtime/EventLoop.js"
import { Lifetime } from "../../application/runtime/Lifetime.js"
import * as Admin from "../admin/Admin.js"
import type { Config } from "../config/Config.js"
import * as Groups from "../http/handlers/Groups.js"
import * as Playground from "../http/playground/Playground.js"
import * as HttpService from "../http/service/HttpService.js"
import * as Otlp from "../telemetry/Otlp.js"
import * as Wiring from "../Wiring.js"
import * as Server from "./server/Server.js"

/** Whether somebody listens to spans. Each costs a stack trace, also when nobody does. */
const isTraced: Effect.Effect<boolean> = Effect.map(
  Effect.tracer,
  (tracer) => tracer !== Context.get(DefaultServices.liveServices, Tracer.Tracer)
)

const serve = (
  config: Config,
  seams: Wiring.Seams
): Effect.Effect<Server.Listening, Server.ListenError | Wiring.StartError, Scope.Scope> =>
  Effect.gen(function* () {
    const { edge, limits, listen, operations } = config
    const { admin } = operations
    const ports = yield* Layer.build(Wiring.layer(config, seams))
    const front = yield* HttpService.make(Groups.handlers, {
      maxBodyBytes: limits.bodyBytes,
      maxElements: limits.arrayElements,
      maxConcurrent: limits.concurrentRequests,
      strangersPerMinute: limits.strangersPerMinute,
      trustedProxies: edge.trustedProxies,
      corsOrigins: edge.corsOrigins,
      ...(config.profile === "development" && { pages: Playground.pages }),
      lastCall: Context.get(ports, Lifetime).stopWaiting
    }).pipe(Effect.provide(ports))
    if (admin !== null) {
      const { url } = yield* Admin.serve({
        ...admin,
        refresh: yield* Observed.lanes(Context.get(ports, Journal)),
        audit: Context.get(ports, AuditLog)
      })
      yield* Effect.annotateLogs(Effect.logInfo("the operator's port is open"), { url })
    }
    return yield* Server.serve(front, {
      ...listen,
      drainMillis: limits.drainMillis,
      maxConnections: limits.connections,
      maxConnectionsPerAddress: limits.connectionsPerAddress,
      trustedProxies: edge.trustedProxies
    })
  })

/**
 * The whole service, listening until the scope closes. Closing stops in order: no new requests, those under way are
 * answered within the drain time or told what is known of their transaction, then engine and stores.
 */
export const start = (
  config: Config,
  seams: Wiring.Seams = {}
): Effect.Effect<Server.Listening, Server.ListenError | Wiring.StartError, Scope.Scope> =>
  Effect.gen(function* () {
    const { telemetry } = config.operations
    // First: what is begun before has no tracer.
    if (telemetry !== null) yield* Layer.build(Otlp.layer(telemetry))
    return yield* Effect.withTracerEnabled(serve(config, seams), yield* isTraced)
  }).pipe(Effect.withScheduler(EventLoop.scheduler))
