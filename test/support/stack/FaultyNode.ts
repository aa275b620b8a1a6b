import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text as bodyOf } from "node:stream/consumers"

export interface Question {
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

/** A JSON-RPC answer without its frame. */
export type Answer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }

/**
 * Fault of one call; `ask` forwards it, or a replacement, to the real node. Null cuts the connection, which loses all
 * answers of the batch.
 */
export type Fault = (question: Question, ask: (other?: Question) => Promise<Answer>) => Promise<Answer | null>

/** Stands in front of a real node and may lie, refuse, or hang up. */
export interface FaultyNode {
  readonly url: string
  /** From now on; the honest node when left out. */
  readonly behave: (fault?: Fault) => void
  readonly stop: () => Promise<void>
}

export const honest: Fault = (_, ask) => ask()

export const refusal = (code: number, message: string): Answer => ({ error: { code, message } })

export const startFaultyNode = async (target: string): Promise<FaultyNode> => {
  let fault = honest
  const forward = async (call: object): Promise<Answer> => {
    const response = await fetch(target, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call)
    })
    const { error, result } = JSON.parse(await response.text())
    return error === undefined ? { result } : { error }
  }
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await bodyOf(request))
    const calls: ReadonlyArray<Question & { readonly id: unknown }> = Array.isArray(body) ? body : [body]
    const answers = await Promise.all(
      calls.map(async (call) => {
        const answer = await fault(call, (other) => forward({ ...call, ...other }))
        return answer === null ? null : { jsonrpc: "2.0", id: call.id, ...answer }
      })
    )
    if (answers.includes(null)) {
      request.socket.destroy()
      return
    }
    response.setHeader("content-type", "application/json")
    response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    behave: (next = honest) => {
      fault = next
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}
