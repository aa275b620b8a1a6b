import { createServer, request as httpRequest, type IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** One HTTP round trip to the node, with its JSON-RPC methods. */
export interface Exchange {
  readonly methods: ReadonlyArray<string>
}

/** A recording loopback proxy in front of a node. */
export interface CountingProxy {
  readonly url: string
  /** Returns the exchanges since the last call. */
  readonly take: () => ReadonlyArray<Exchange>
}

const read = async (stream: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

const methodsOf = (body: Buffer): ReadonlyArray<string> => {
  const json: unknown = JSON.parse(body.toString("utf8"))
  return (Array.isArray(json) ? json : [json]).map((call) =>
    typeof call === "object" && call !== null && "method" in call ? String(call.method) : "?"
  )
}

/** Listens on a free port of 127.0.0.1 until the scope closes. */
export const start = (target: string): Effect.Effect<CountingProxy, never, Scope.Scope> =>
  Effect.gen(function* () {
    let seen: Array<Exchange> = []
    const server = createServer((incoming, outgoing) => {
      const fail = () => outgoing.writeHead(502).end()
      read(incoming).then((body) => {
        seen.push({ methods: methodsOf(body) })
        const onward = httpRequest(
          target,
          { method: "POST", headers: { "content-type": "application/json", "content-length": body.length } },
          (answer) => {
            outgoing.writeHead(answer.statusCode ?? 502, { "content-type": "application/json" })
            answer.pipe(outgoing)
          }
        )
        onward.on("error", fail)
        onward.end(body)
      }, fail)
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const address = server.address()
    return {
      url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
      take: () => {
        const taken = seen
        seen = []
        return taken
      }
    }
  })

/** Polling methods of a monitor: shared by all requests, and not part of one request's cost. */
const polling = new Set(["eth_blockNumber", "eth_getBlockByNumber", "eth_getTransactionReceipt"])

export interface Cost {
  readonly roundTrips: number
  readonly calls: number
  /** Counts by method, in order of first use. */
  readonly methods: ReadonlyMap<string, number>
  /** Round trips that only polled. */
  readonly polls: number
}

/** Total of the exchanges, without polling. */
export const cost = (exchanges: ReadonlyArray<Exchange>): Cost => {
  const paid = exchanges.filter(({ methods }) => methods.some((method) => !polling.has(method)))
  const methods = new Map<string, number>()
  for (const method of paid.flatMap((exchange) => exchange.methods))
    methods.set(method, (methods.get(method) ?? 0) + 1)
  return {
    roundTrips: paid.length,
    calls: paid.reduce((sum, exchange) => sum + exchange.methods.length, 0),
    methods,
    polls: exchanges.length - paid.length
  }
}
