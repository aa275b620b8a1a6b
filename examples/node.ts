import type { AddressInfo, Server } from "node:net"
import { getRequestListener } from "@hono/node-server"
import * as Http from "castellan/http"

/** A started example: its URL, and a function that stops it. */
export interface Running {
  readonly url: string
  readonly close: () => Promise<void>
}

/** Makes a listener for servers of Node that serves castellan below a path. */
export const mount = (config: Http.Config.Config, basePath: string) => {
  const addresses = new WeakMap<Request, string>()
  const service = Http.toWebHandler(config, {
    basePath,
    // The service limits callers without a key per address. Omit this if the host knows no addresses.
    remoteAddress: (request) => addresses.get(request) ?? null
  })
  const listener = getRequestListener((request, { incoming }) => {
    addresses.set(request, incoming.socket.remoteAddress ?? "")
    return service.handler(request)
  })
  return { ...service, listener }
}

/** Listens on loopback. `close` stops new connections, then the service, then remaining connections. */
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
