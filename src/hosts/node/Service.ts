import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Engine from "../../application/engine/Engine.js"
import * as Observed from "../../application/Observed.js"
import { AuditLog } from "../../application/ports/AuditLog.js"
import { Journal } from "../../application/ports/Journal.js"
import * as Admin from "../admin/Admin.js"
import type { Config } from "../Config.js"
import * as Front from "../http/Front.js"
import * as Http from "../http/Http.js"
import * as Playground from "../http/playground/Playground.js"
import * as Otlp from "../telemetry/Otlp.js"
import * as Wiring from "../Wiring.js"
import * as Server from "./Server.js"

/**
 * The whole service, listening until the scope closes. Closing stops in order: no new requests, those under way are
 * answered within the drain time or told what is known of their transaction, then engine and stores.
 */
export const start = (
  config: Config,
  seams: Wiring.Seams = {}
): Effect.Effect<Server.Listening, Server.ListenError | Wiring.StartError, Scope.Scope> =>
  Effect.gen(function* () {
    const { edge, limits, listen, operations } = config
    const { admin } = operations
    // First: what is begun before has no tracer.
    if (operations.telemetry !== null) yield* Layer.build(Otlp.layer(operations.telemetry))
    const ports = yield* Layer.build(Wiring.layer(config, seams))
    const front = yield* Front.make(Http.handlers, {
      maxBodyBytes: limits.bodyBytes,
      maxElements: limits.arrayElements,
      maxConcurrent: limits.concurrentRequests,
      strangersPerMinute: limits.strangersPerMinute,
      trustedProxies: edge.trustedProxies,
      corsOrigins: edge.corsOrigins,
      ...(config.profile === "development" && { pages: Playground.pages }),
      lastCall: Context.get(ports, Engine.Engine).stopWaiting
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
