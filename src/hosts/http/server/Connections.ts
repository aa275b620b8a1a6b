import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as IpAddress from "../../../domain/net/IpAddress.js"
import * as ClientAddress from "../limits/ClientAddress.js"

export interface Limits {
  /** Most open connections. */
  readonly most: number
  /** Most open connections per address (IPv6: per /64). */
  readonly mostPerAddress: number
  /** Proxies carry many clients' connections and count only for `most`. */
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
}

/** Limits a server's connections. An excess connection is closed without a response: it has sent no request yet. */
export const limit = (server: Server, { most, mostPerAddress, trustedProxies }: Limits): void => {
  const open = new Map<string, number>()
  server.maxConnections = most
  server.on("connection", (socket: Socket) => {
    const address = ClientAddress.parse(socket.remoteAddress ?? null)
    if (address === undefined || trustedProxies.some((range) => IpAddress.contains(range, address))) return
    const client = ClientAddress.name(address)
    const count = open.get(client) ?? 0
    if (count >= mostPerAddress) return void socket.destroy()
    open.set(client, count + 1)
    socket.once("close", () => {
      const left = (open.get(client) ?? 1) - 1
      if (left === 0) open.delete(client)
      else open.set(client, left)
    })
  })
}
