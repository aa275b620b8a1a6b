import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as NativeCrypto from "../../../src/adapters/native/Crypto.js"
import * as HostileNode from "../../support/HostileNode.js"
import * as MemoryService from "../../support/http/MemoryService.js"
import * as Service from "../../support/http/Service.js"
import * as LoopMonitor from "../../support/LoopMonitor.js"

/** CPU milliseconds between two turns of the event loop. */
export const most = 100

/** The node's reply to a method, as JSON. */
export type Says = (method: string) => Buffer

export interface Answer {
  readonly status: number
  readonly body: string
}

/** The in-memory service, a scripted node and a monitor of the event loop. */
export interface Holding {
  /** URL of the node. It lacks Multicall3, so each read is a separate call. */
  readonly rpc: string
  /** Sets the node's later replies. */
  readonly says: (says: Says) => void
  readonly ask: (
    path: string,
    body: string | null,
    more?: Readonly<Record<string, string>>
  ) => Promise<Answer>
  /** The longest hold under concurrent requests; a null body is a GET. */
  readonly held: (
    path: string,
    bodies: ReadonlyArray<string | null>,
    more?: Readonly<Record<string, string>>
  ) => Promise<{ readonly answers: ReadonlyArray<Answer>; readonly longest: number }>
  readonly stop: () => Promise<void>
}

export const hex = (value: bigint, digits: number): string => value.toString(16).padStart(digits, "0")

/** Digits of distinct addresses. */
export const addressOf = (index: number): string =>
  hex(BigInt(index + 1) * 0x1_0000_0001_0000_0001_0000_0001n, 40)

const constants: Readonly<Record<string, Buffer>> = {
  eth_chainId: Buffer.from('"0x7a69"'),
  eth_getCode: Buffer.from('"0x"')
}

const quiet = Layer.succeed(References.MinimumLogLevel, "None")

export const start = async (): Promise<Holding> => {
  // As the service does.
  await Effect.runPromise(NativeCrypto.install)
  const scope = await Effect.runPromise(Scope.make())
  const front = await Effect.runPromise(Effect.provide(Scope.provide(MemoryService.make, scope), quiet))
  let says: Says = () => Buffer.from("null")
  const node = await HostileNode.httpNode((response, body) => {
    const parts = HostileNode.callsOf(body).flatMap(({ id, method }, index) => [
      Buffer.from(`${index > 0 ? "," : ""}{"jsonrpc":"2.0","id":${id},"result":`),
      constants[method] ?? says(method),
      Buffer.from("}")
    ])
    response.writeHead(200, { "content-type": "application/json" })
    const whole = body.startsWith("[") ? [Buffer.from("["), ...parts, Buffer.from("]")] : parts
    for (const part of whole) response.write(part)
    response.end()
  })

  const ask: Holding["ask"] = (path, body, more = {}) => {
    const bytes = new TextEncoder().encode(body ?? "")
    const asked = {
      target: path,
      headers: { "x-api-key": Service.key, ...more },
      remoteAddress: "203.0.113.1"
    }
    let at = 0
    const sent = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        await new Promise((resolve) => setImmediate(resolve))
        if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + 65_536))
        else controller.close()
        at += 65_536
      }
    })
    const described = { "content-type": "application/json", "content-length": String(bytes.length) }
    const answered = Service.ask(
      front,
      body === null
        ? asked
        : { ...asked, method: "POST", headers: { ...asked.headers, ...described }, body: sent }
    )
    return Effect.runPromise(
      Effect.provide(
        Effect.map(answered, ({ status, text }) => ({ status, body: text })),
        quiet
      )
    )
  }

  return {
    rpc: node.url,
    says: (next) => {
      says = next
    },
    ask,
    held: (path, bodies, more) =>
      LoopMonitor.leastOf(most, async () => {
        await new Promise((resolve) => setImmediate(resolve))
        const monitor = LoopMonitor.start()
        const answers = await Promise.all(bodies.map((body) => ask(path, body, more)))
        monitor.stop()
        const longest = monitor.longest()
        console.log(`${path} ${answers[0]?.status} ${longest.toFixed(1)} ms`)
        return { answers, longest }
      }),
    stop: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await node.close()
    }
  }
}
