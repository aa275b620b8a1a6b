import { once } from "node:events"
import { createServer } from "node:net"

/** A port of 127.0.0.1 that is free at this moment; the next moment somebody else may have it. */
export const free = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  if (address === null || typeof address === "string") throw new Error("no free port")
  return address.port
}

const tries = 5

/** Starts a server that cannot choose its port by itself, with another one when somebody else was quicker. */
export const withFree = async <A>(start: (port: number) => Promise<A>): Promise<A> => {
  for (let attempt = 1; ; attempt++)
    try {
      return await start(await free())
    } catch (error) {
      if (attempt === tries || !/address already in use|EADDRINUSE/i.test(String(error))) throw error
    }
}
