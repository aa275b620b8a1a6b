import { Agent, request } from "node:http"

export interface Answer {
  readonly status: number
  readonly text: string
}

/** A lightweight client of one server, over node:http with kept-alive connections. */
export interface Client {
  readonly send: (
    method: "GET" | "POST",
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: string
  ) => Promise<Answer>
  readonly close: () => void
}

export const make = (url: string, connections = Number.POSITIVE_INFINITY): Client => {
  const { hostname, port } = new URL(url)
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  return {
    send: (method, path, headers, body) =>
      new Promise((resolve, reject) => {
        const sent = request(
          {
            agent,
            host: hostname,
            port,
            path,
            method,
            headers: body === undefined ? headers : { ...headers, "content-length": Buffer.byteLength(body) }
          },
          (incoming) => {
            const chunks: Array<Buffer> = []
            incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
            incoming.on("end", () =>
              resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") })
            )
            incoming.on("error", reject)
          }
        )
        sent.on("error", reject)
        sent.end(body)
      }),
    close: () => agent.destroy()
  }
}

export interface Load {
  readonly done: number
  readonly seconds: number
  /** Milliseconds of each request. */
  readonly latencies: ReadonlyArray<number>
}

/** Runs callers with one request at a time each, until the time is over or `most` requests have begun. */
export const closedLoop = async (
  options: { readonly callers: number; readonly millis: number; readonly most?: number },
  one: (caller: number, nth: number) => Promise<void>
): Promise<Load> => {
  const latencies: Array<number> = []
  const began = performance.now()
  let begun = 0
  await Promise.all(
    Array.from({ length: options.callers }, async (_, caller) => {
      while (
        performance.now() - began < options.millis &&
        begun < (options.most ?? Number.POSITIVE_INFINITY)
      ) {
        const nth = begun++
        const from = performance.now()
        await one(caller, nth)
        latencies.push(performance.now() - from)
      }
    })
  )
  return { done: latencies.length, seconds: (performance.now() - began) / 1_000, latencies }
}
