import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Config } from "../config/Config.js"
import * as Service from "../service/Service.js"
import type * as Wiring from "../Wiring.js"
import * as Server from "./server/Server.js"

/**
 * The whole service, listening until the scope closes. Closing stops in order: no new requests, those under way are
 * answered within the drain time or told what is known of their transaction, then engine and stores.
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
