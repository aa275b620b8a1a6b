import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as IpAddress from "../../../domain/net/IpAddress.js"
import * as ClientAddress from "../../http/limits/ClientAddress.js"

/** Bounds on open connections. */
export interface Limits {
  /** Of everybody together. */
  readonly most: number
  /** Of one address (of one /64 of IPv6). */
  readonly mostPerAddress: number
  /** Proxies bring the connections of many; they are under the first bound only. */
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
}

/**
 * Holds the connections of a server to the limits. One too many is closed without a word: it has not asked for anything
 * yet, and whoever opens so many does not listen.
 */
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
