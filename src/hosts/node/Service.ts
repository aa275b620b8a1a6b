import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Config } from "../config/Config.js"
import * as Server from "../http/server/Server.js"
import * as Service from "../service/Service.js"
import type * as Wiring from "../Wiring.js"

/**
 * Runs the whole service until the scope closes. It then stops in order: refuses new requests, answers those in flight
 * within the drain time, or with the known state of their transaction, then ends engine and stores.
 */
export const start = (
  config: Config,
  options: Service.Options = {}
): Effect.Effect<Server.Listening, Server.ListenError | Wiring.StartError, Scope.Scope> => {
  const { edge, limits, listen } = config
  return Service.make(config, options, (service) =>
    Server.serve(service, {
      ...listen,
      drainMillis: limits.drainMillis,
      maxConnections: limits.connections,
      maxConnectionsPerAddress: limits.connectionsPerAddress,
      trustedProxies: edge.trustedProxies
    })
  )
}
