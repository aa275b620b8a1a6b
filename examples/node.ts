import type { AddressInfo, Server } from "node:net"
import { getRequestListener } from "@hono/node-server"
import * as Http from "castellan/http"

/** What every example gives: where it listens, and its end. */
export interface Running {
  readonly url: string
  readonly close: () => Promise<void>
}

/** The service for servers of Node: below a path, as a listener for their requests. */
export const mount = (config: Http.Config.Config, basePath: string) => {
  const addresses = new WeakMap<Request, string>()
  const service = Http.toWebHandler(config, {
    basePath,
    // Counts callers without a key by address. Leave it out where the host knows no addresses.
    remoteAddress: (request) => addresses.get(request) ?? null
  })
  const listener = getRequestListener((request, { incoming }) => {
    addresses.set(request, incoming.socket.remoteAddress ?? "")
    return service.handler(request)
  })
  return { ...service, listener }
}

/** Listens on loopback, and ends in this order: no new connections, the service, what is left of connections. */
export const listen = async (
  server: Server,
  port: number,
  basePath: string,
  dispose: () => Promise<void>
): Promise<Running> => {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", resolve)
  })
  const { port: taken } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${taken}${basePath}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      await dispose()
      if ("closeAllConnections" in server && typeof server.closeAllConnections === "function")
        server.closeAllConnections()
      await closed
    }
  }
}
