import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTcpServer, type Server, type Socket } from "node:net"

/** One request as received by the node. */
export interface Seen {
  readonly body: string
  readonly url: string
  readonly headers: IncomingMessage["headers"]
}

export interface HostileNode {
  /** The path must never appear in output. */
  readonly url: string
  readonly seen: ReadonlyArray<Seen>
  readonly connections: () => number
  readonly open: () => number
  /** Resolves when no connection is open. */
  readonly drained: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Part of the path and query of every node's URL. */
export const secret = "s3cr3t-k3y-0123456789"

const listen = async (server: Server, seen: ReadonlyArray<Seen>): Promise<HostileNode> => {
  const sockets = new Set<Socket>()
  const waiting: Array<() => void> = []
  let connections = 0
  server.on("connection", (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on("error", () => undefined)
    socket.on("close", () => {
      sockets.delete(socket)
      if (sockets.size === 0) for (const resolve of waiting.splice(0)) resolve()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/v3/${secret}?token=${secret}`,
    seen,
    connections: () => connections,
    open: () => sockets.size,
    drained: () =>
      sockets.size === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve)),
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      })
  }
}

/** An HTTP server on loopback whose `answer` handles requests; `turn` counts from 0. */
export const httpNode = (
  answer: (response: ServerResponse, body: string, turn: number) => void
): Promise<HostileNode> => {
  const seen: Array<Seen> = []
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8")
    request.on("data", (chunk: string) => {
      body += chunk
    })
    request.on("end", () => {
      const turn = seen.push({ body, url: request.url ?? "", headers: request.headers }) - 1
      answer(response, body, turn)
    })
  })
  return listen(server, seen)
}

/** A TCP server on loopback whose `talk` handles connections. */
export const tcpNode = (talk: (socket: Socket) => void): Promise<HostileNode> =>
  listen(createTcpServer(talk), [])

export interface Asked {
  readonly id: number
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

/** The calls in a request body. */
export const callsOf = (body: string): ReadonlyArray<Asked> => {
  const parsed: unknown = JSON.parse(body)
  return (Array.isArray(parsed) ? parsed : [parsed]) as ReadonlyArray<Asked>
}

export const json = (response: ServerResponse, value: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(value))
}

/** Replies properly to each call with its `result`. */
export const honest = (response: ServerResponse, body: string, result: (asked: Asked) => unknown): void => {
  const answers = callsOf(body).map((asked) => ({ jsonrpc: "2.0", id: asked.id, result: result(asked) }))
  json(response, body.startsWith("[") ? answers : answers[0])
}

/** A gateway's refusal of calls beyond its limit. */
export type Refusing = (response: ServerResponse, body: string) => void

const limited = { code: -32_005, message: "rate limit exceeded" }

export const refusing: Readonly<Record<string, Refusing>> = {
  "429 and a time": (response) => response.writeHead(429, { "retry-after": "1" }).end(),
  "429 alone": (response) => response.writeHead(429).end("slow down"),
  "one error": (response) => json(response, { jsonrpc: "2.0", id: null, error: limited }),
  "one error for each call": (response, body) => {
    const answers = callsOf(body).map(({ id }) => ({ jsonrpc: "2.0", id, error: limited }))
    json(response, body.startsWith("[") ? answers : answers[0])
  },
  "errors that speak of the batch": (response, body) => {
    const error = { code: -32_000, message: "too many calls in one request" }
    const answers = callsOf(body).map(({ id }) => ({ jsonrpc: "2.0", id, error }))
    if (body.startsWith("[")) json(response, answers)
    else response.writeHead(429).end()
  }
}

/** A gateway with a budget of `perSecond` calls. It rejects a request beyond the budget left, at no cost. */
export const countingGateway = (
  perSecond: number,
  refuse: Refusing,
  answer: (response: ServerResponse, body: string) => void
): Promise<HostileNode> => {
  let left = perSecond
  let at = performance.now()
  return httpNode((response, body) => {
    const now = performance.now()
    left = Math.min(perSecond, left + ((now - at) * perSecond) / 1_000)
    at = now
    const { length } = callsOf(body)
    if (length > left) return refuse(response, body)
    left -= length
    answer(response, body)
  })
}
