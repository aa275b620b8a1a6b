import { once } from "node:events"
import { createServer, type Server } from "node:net"

/** Listens on a free port of 127.0.0.1. */
export const listen = async (server: Server): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("no free port")
  return address.port
}

/** A free port of 127.0.0.1; another process may take it at any time. */
export const free = async (): Promise<number> => {
  const server = createServer()
  const port = await listen(server)
  server.close()
  await once(server, "close")
  return port
}

const tries = 5

/** Starts a server that cannot choose its own port, and retries on another port if a process has taken it. */
export const withFree = async <A>(start: (port: number) => Promise<A>): Promise<A> => {
  for (let attempt = 1; ; attempt++)
    try {
      return await start(await free())
    } catch (error) {
      if (attempt === tries || !/address already in use|EADDRINUSE/i.test(String(error))) throw error
    }
}
