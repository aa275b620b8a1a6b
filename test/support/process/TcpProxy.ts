import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"

/** A TCP connection to a server that tests can cut. */
export interface TcpProxy {
  readonly port: number
  /** Drops all bytes in both directions without closing connections, like a network partition. */
  readonly cut: () => void
  /** Restores the connection; bytes in transit arrive. */
  readonly mend: () => void
  readonly stop: () => Promise<void>
}

/** Listens on `host`, by default on a port that the system picks. */
export const start = async (
  target: { readonly host: string; readonly port: number },
  { host = "127.0.0.1", port = 0 }: { readonly host?: string; readonly port?: number } = {}
): Promise<TcpProxy> => {
  let isCut = false
  const sockets = new Set<Socket>()
  const lay = (from: Socket, to: Socket) => {
    sockets.add(from)
    if (isCut) from.pause()
    from.on("data", (bytes) => {
      if (to.destroyed) return
      if (!to.write(bytes)) {
        from.pause()
        to.once("drain", () => {
          if (!isCut) from.resume()
        })
      }
    })
    from.on("end", () => to.end())
    from.on("error", () => to.destroy())
    from.on("close", () => {
      sockets.delete(from)
      // A cut wire closes no connection.
      if (!isCut) to.destroy()
    })
  }
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ ...target, allowHalfOpen: true })
    lay(near, far)
    lay(far, near)
  })
  server.listen(port, host)
  await once(server, "listening")
  const address = server.address()
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    cut: () => {
      isCut = true
      for (const socket of sockets) socket.pause()
    },
    mend: () => {
      isCut = false
      for (const socket of sockets) socket.resume()
    },
    stop: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    }
  }
}
