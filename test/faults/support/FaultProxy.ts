import { createServer, type ServerResponse } from "node:http"
import { text as bodyOf } from "node:stream/consumers"
import * as Port from "../../support/process/Port.js"
import { type Fault, none, type Script, type Stream } from "./Fault.js"
import * as StaleView from "./StaleView.js"

interface Call {
  readonly id: unknown
  readonly method: string
  readonly params?: ReadonlyArray<unknown>
}

/** Called for every transaction: before the node receives it, and after it has taken or refused it. */
export type OnSend = (moment: "before" | "after") => void

/** A proxy before the real node: applies its script's faults, then forwards honestly. */
export interface FaultProxy {
  readonly url: string
  /** Replaces the script; the unplayed part of the earlier script is dropped. A function decides each exchange. */
  readonly play: (script: Script | ((stream: Stream) => Fault | null), onSend?: OnSend) => void
  /** From now on an honest node. */
  readonly calm: () => void
  /** Counts of faults so far, by kind. */
  readonly faults: () => ReadonlyMap<Fault["kind"], number>
  readonly stop: () => Promise<void>
}

const polls = new Set([
  "eth_getTransactionReceipt",
  "eth_getTransactionByHash",
  "eth_blockNumber",
  "eth_getTransactionCount"
])

const streamOf = (calls: ReadonlyArray<Call>): Stream => {
  if (calls.some(({ method }) => method === "eth_sendRawTransaction")) return "send"
  return calls.every(({ method }) => polls.has(method)) ? "poll" : "read"
}

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

export const start = async (target: string): Promise<FaultProxy> => {
  let script: Script | ((stream: Stream) => Fault | null) = none
  let onSend: OnSend = () => undefined
  let reached: Record<Stream, number> = { send: 0, poll: 0, read: 0 }
  let limited = { left: 0, retryAfter: null as number | null }
  let stale = { left: 0, block: 0n }
  const tally = new Map<Fault["kind"], number>()

  const count = (kind: Fault["kind"]) => tally.set(kind, (tally.get(kind) ?? 0) + 1)

  const ask = async (body: string): Promise<string> => {
    const answer = await fetch(target, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body
    })
    return answer.text()
  }
  const head = async (): Promise<bigint> =>
    BigInt(
      JSON.parse(await ask('{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}')).result ?? 0
    )

  /** The fault of this exchange; faults over several exchanges begin here. */
  const faultOf = async (stream: Stream): Promise<Fault | null> => {
    const fault = typeof script === "function" ? script(stream) : (script[stream][reached[stream]] ?? null)
    reached[stream] += 1
    if (limited.left > 0) return { kind: "429", burst: 0, retryAfter: limited.retryAfter }
    if (fault === null) return null
    count(fault.kind)
    if (fault.kind === "429") limited = { left: fault.burst, retryAfter: fault.retryAfter }
    if (fault.kind === "stale") {
      const latest = await head()
      const behind = BigInt(fault.blocks)
      stale = { left: fault.exchanges, block: latest > behind ? latest - behind : 0n }
    }
    return fault
  }

  /** The node's answer, as an old view of the chain where the node is stale. */
  const forward = async (body: string, calls: ReadonlyArray<Call>, stream: Stream): Promise<string> => {
    if (stream === "send") onSend("before")
    const old = stale.left > 0 && stream !== "send" ? stale.block : null
    if (old !== null) stale.left -= 1
    const answer =
      old === null
        ? await ask(body)
        : StaleView.answer(
            calls,
            JSON.parse(await ask(JSON.stringify(StaleView.question(JSON.parse(body), old)))),
            old
          )
    if (stream === "send") onSend("after")
    return answer
  }

  const misbehave = async (
    fault: Fault,
    body: string,
    calls: ReadonlyArray<Call>,
    stream: Stream,
    response: ServerResponse
  ): Promise<void> => {
    const say = (text: string, status = 200, headers: Readonly<Record<string, string>> = {}) => {
      if (response.destroyed) return
      response.writeHead(status, { "content-type": "application/json", ...headers })
      response.end(text)
    }
    const batch = Array.isArray(JSON.parse(body))
    /** A batch's replies in another shape; a single reply stays unchanged. */
    const reshaped = async (change: (answers: ReadonlyArray<unknown>) => ReadonlyArray<unknown>) => {
      const text = await forward(body, calls, stream)
      say(batch ? JSON.stringify(change(JSON.parse(text))) : text)
    }
    switch (fault.kind) {
      case "delay":
        await pause(fault.millis)
        return say(await forward(body, calls, stream))
      case "cut before":
        response.destroy()
        return
      case "cut after":
        await forward(body, calls, stream)
        response.destroy()
        return
      case "silence":
        await forward(body, calls, stream)
        return
      case "429": {
        limited.left -= 1
        const { retryAfter } = fault
        return say("too many requests", 429, retryAfter === null ? {} : { "retry-after": String(retryAfter) })
      }
      case "gateway":
        return say("<html>bad gateway</html>", fault.status, { "content-type": "text/html" })
      case "garbage":
        return say("<html>welcome</html>", 200, { "content-type": "text/html" })
      case "wrong error": {
        if (fault.forwarded) await forward(body, calls, stream)
        const error = { code: fault.code, message: fault.message }
        const each = calls.map(({ id }) => ({ jsonrpc: "2.0", id, error }))
        return say(JSON.stringify(batch ? each : each[0]))
      }
      case "duplicated answer":
        return reshaped((answers) => [...answers, ...answers.slice(0, 1)])
      case "reordered answers":
        return reshaped((answers) => answers.toReversed())
      case "left out answer":
        return reshaped((answers) => answers.slice(1))
      case "stale":
        return say(await forward(body, calls, stream))
    }
  }

  const server = createServer(async (request, response) => {
    try {
      const body = await bodyOf(request)
      const parsed: Call | ReadonlyArray<Call> = JSON.parse(body)
      const calls: ReadonlyArray<Call> = Array.isArray(parsed) ? parsed : [parsed]
      const stream = streamOf(calls)
      const fault = await faultOf(stream)
      if (fault !== null) return await misbehave(fault, body, calls, stream, response)
      const answer = await forward(body, calls, stream)
      if (response.destroyed) return
      response.setHeader("content-type", "application/json")
      response.end(answer)
    } catch {
      // The client or the chain has closed, so the exchange ends.
      response.destroy()
    }
  })
  const port = await Port.listen(server)
  const play: FaultProxy["play"] = (next, hook = () => undefined) => {
    script = next
    onSend = hook
    reached = { send: 0, poll: 0, read: 0 }
    limited = { left: 0, retryAfter: null }
    stale = { left: 0, block: 0n }
  }
  return {
    url: `http://127.0.0.1:${port}`,
    play,
    calm: () => play(none),
    faults: () => tally,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
