import { createServer as createHttp, type IncomingMessage, type RequestListener } from "node:http"
import { createServer as createHttps } from "node:https"
import type { AddressInfo, Socket } from "node:net"
import { buffer as read } from "node:stream/consumers"
import * as Effect from "effect/Effect"

export interface Asked {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
}

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * - `hang`: no reply; `drip`: a byte from time to time, without end
 * - `cut`: the connection closes before the reply; `cutInBody`: within it
 * - a reply: replaces the service's own
 * - a function: modifies the service's own reply
 */
export type Fault = "hang" | "drip" | "cut" | "cutInBody" | Answer | ((answer: Answer) => Answer)

export interface Server {
  readonly port: number
  readonly asked: Array<Asked>
  /** Fault of a request; null for none. */
  fault: ((asked: Asked) => Fault | null) | null
  readonly connections: () => number
}

/** A service on loopback that replies with `answer` unless a fault is set. Closed with the scope. */
export const make = (
  answer: (asked: Asked) => Answer,
  tls?: { readonly key: string; readonly cert: string }
) =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<Server & { readonly close: () => Promise<void> }> => {
      const sockets = new Set<Socket>()
      const timers = new Set<NodeJS.Timeout>()
      const listener: RequestListener = (request, response) => {
        void read(request).then(
          (body) => {
            const asked: Asked = {
              method: request.method ?? "",
              url: new URL(request.url ?? "/", `http://${request.headers.host}`),
              headers: request.headers,
              body
            }
            running.asked.push(asked)
            const fault = running.fault?.(asked) ?? null
            if (fault === "hang") return
            if (fault === "cut") return request.socket.destroy()
            if (fault === "drip") {
              response.writeHead(200, { "content-type": "application/json" })
              timers.add(setInterval(() => response.write(" "), 20))
              return
            }
            const given = answerTo(asked, fault)
            const text = Buffer.from(given.body)
            response.writeHead(given.status, {
              "content-type": "application/json",
              "content-length": String(text.length),
              ...given.headers
            })
            if (fault !== "cutInBody") return response.end(text)
            response.write(text.subarray(0, text.length / 2), () => request.socket.destroy())
          },
          () => request.socket.destroy()
        )
      }
      const answerTo = (asked: Asked, fault: Fault | null): Answer => {
        if (fault !== null && typeof fault === "object") return fault
        const own = answer(asked)
        return typeof fault === "function" ? fault(own) : own
      }
      const server = tls === undefined ? createHttp(listener) : createHttps(tls, listener)
      server.on("connection", (socket: Socket) => {
        sockets.add(socket)
        socket.on("error", () => socket.destroy())
        socket.on("close", () => sockets.delete(socket))
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const running = {
        port: (server.address() as AddressInfo).port,
        asked: [] as Array<Asked>,
        fault: null as Server["fault"],
        connections: () => sockets.size,
        close: () => {
          for (const timer of timers) clearInterval(timer)
          for (const socket of sockets) socket.destroy()
          return new Promise<void>((resolve) => server.close(() => resolve()))
        }
      }
      return running
    }),
    (running) => Effect.promise(running.close)
  )
