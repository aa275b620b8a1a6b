import type { ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { callsOf, honest, json, secret } from "../../support/HostileNode.js"
import { balances, call, connect, failure, http, raw, reasonOf, tcp } from "./support.js"

/** Short waits for the answer to begin, or to end. Anything else has the time that a busy machine needs. */
const hasty = { http: { connectMillis: 10_000, firstByteMillis: 300, totalMillis: 10_000 } }
const brief = { http: { connectMillis: 10_000, firstByteMillis: 10_000, totalMillis: 700 } }

describe("a node that does not answer as one", () => {
  const bodies: ReadonlyArray<readonly [string, string | Buffer]> = [
    ["nothing", ""],
    ["HTML", "<html><body>It works!</body></html>"],
    ["null", "null"],
    ["a number", "7"],
    ["text", '"0x1"'],
    ["an empty object", "{}"],
    ["an empty batch", "[]"],
    ["a batch of nothing", "[null]"],
    ["a result without an id", '{"jsonrpc":"2.0","result":"0x1"}'],
    ["a result with id null", '{"jsonrpc":"2.0","id":null,"result":"0x1"}'],
    ["another id", '{"jsonrpc":"2.0","id":99,"result":"0x1"}'],
    ["the id as text", '{"jsonrpc":"2.0","id":"1","result":"0x1"}'],
    ["the answer in a batch", '[{"jsonrpc":"2.0","id":1,"result":"0x1"}]'],
    ["neither result nor error", '{"jsonrpc":"2.0","id":1}'],
    ["a malformed error", '{"jsonrpc":"2.0","id":1,"error":true,"result":"0x1"}'],
    ["an empty error", '{"jsonrpc":"2.0","id":1,"error":{}}'],
    ["a result of another type", '{"jsonrpc":"2.0","id":1,"result":{"chainId":1}}'],
    ["a number for a quantity", '{"jsonrpc":"2.0","id":1,"result":1}'],
    ["an empty quantity", '{"jsonrpc":"2.0","id":1,"result":"0x"}'],
    ["a negative quantity", '{"jsonrpc":"2.0","id":1,"result":"-0x1"}'],
    ["a quantity beyond 32 bytes", `{"jsonrpc":"2.0","id":1,"result":"0x${"1".repeat(65)}"}`],
    ["half an answer", '{"jsonrpc":"2.0","id":1,"resu'],
    ["brackets without end", "[".repeat(60_000)],
    ["bytes that are not UTF-8", Buffer.from([0x22, 0xff, 0xfe, 0x22])]
  ]
  for (const [name, body] of bodies)
    it.live(`${name}: no RPC`, () =>
      Effect.gen(function* () {
        const node = yield* http((response) => response.end(body))
        const chain = yield* connect(node)
        expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
        expect(node.seen.length).toBe(1)
      })
    )

  it.live("a compressed reply is rejected, since no compression was requested", () =>
    Effect.gen(function* () {
      const node = yield* http((response) => {
        response.writeHead(200, { "content-encoding": "gzip" })
        response.end(gzipSync('{"jsonrpc":"2.0","id":1,"result":"0x1"}'))
      })
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
      expect(node.seen[0]?.headers["accept-encoding"]).toBeUndefined()
    })
  )

  it.live("a reply that is not HTTP is not RPC", () =>
    Effect.gen(function* () {
      const node = yield* tcp((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n\r\n"))
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
    })
  )

  it.live("an answer that says it is too large is not read", () =>
    Effect.gen(function* () {
      const node = yield* http((response) => {
        response.writeHead(200, { "content-length": String(64 * 1_024 + 1) })
        response.flushHeaders()
      })
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
      yield* Effect.promise(node.drained)
    })
  )

  it.live("an answer without end is cut off at the limit, and so is its connection", () =>
    Effect.gen(function* () {
      let written = 0
      const node = yield* http((response) => {
        const chunk = Buffer.alloc(16 * 1_024, 0x20)
        const more = () => {
          while (!response.destroyed) {
            written += chunk.length
            if (!response.write(chunk)) return void response.once("drain", more)
          }
        }
        more()
      })
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
      yield* Effect.promise(node.drained)
      expect(written).toBeLessThan(64 * 1_024 * 1_024)
    })
  )
})

describe("a node that takes its time", () => {
  it.live("a node that accepts the connection and is silent is unreachable, without a retry", () =>
    Effect.gen(function* () {
      const node = yield* http(() => undefined)
      const chain = yield* connect(node, hasty)
      const error = yield* failure(chain.chainId, node)
      expect(error.reason).toBe("unreachable")
      expect(error.message).toContain("no answer within 300 ms")
      expect(node.seen.length).toBe(1)
      yield* Effect.promise(node.drained)
    })
  )

  it.live("headers that trickle in do not stretch the time", () =>
    Effect.gen(function* () {
      const node = yield* tcp((socket) => {
        socket.write("HTTP/1.1 200 OK\r\n")
        const trickle = setInterval(() => socket.write("x: y\r\n"), 20)
        socket.on("close", () => clearInterval(trickle))
      })
      const chain = yield* connect(node, hasty)
      expect((yield* failure(chain.chainId, node)).message).toContain("no answer within 300 ms")
      yield* Effect.promise(node.drained)
    })
  )

  it.live("a body that trickles in ends with the total time", () =>
    Effect.gen(function* () {
      const node = yield* http((response) => {
        response.writeHead(200)
        const trickle = setInterval(() => response.write(" "), 20)
        response.on("close", () => clearInterval(trickle))
      })
      const chain = yield* connect(node, brief)
      const error = yield* failure(chain.chainId, node)
      expect(error).toMatchObject({ reason: "unreachable" })
      expect(error.message).toContain("no complete answer within 700 ms")
      yield* Effect.promise(node.drained)
    })
  )

  it.live("calls that make it work may take all of the total time", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => {
        if (!body.includes("eth_call")) return
        const late = setTimeout(() => honest(response, body, () => "0x"), 450)
        response.on("close", () => clearTimeout(late))
      })
      const chain = yield* connect(node, hasty)
      expect(yield* chain.call(call)).toEqual({ success: true, data: "0x" })
    })
  )
})

describe("a node that answers with an HTTP status", () => {
  for (const status of [301, 302, 303, 307, 308])
    it.live(`${status}: redirects are not followed`, () =>
      Effect.gen(function* () {
        const node = yield* http((response, body, turn) => {
          if (turn > 0) return honest(response, body, () => "0x1")
          response.writeHead(status, { location: `/${secret}` })
          response.end()
        })
        const chain = yield* connect(node)
        expect(yield* reasonOf(chain.chainId, node)).toBe("unreachable")
        expect(node.seen.length).toBe(1)
      })
    )

  for (const status of [400, 401, 403, 404, 405, 501])
    it.live(`${status} with a page: unreachable, and not asked again`, () =>
      Effect.gen(function* () {
        const node = yield* http((response) => {
          response.writeHead(status)
          response.end(`<h1>no such project: ${secret}</h1>`)
        })
        const chain = yield* connect(node)
        const error = yield* failure(chain.chainId, node)
        expect(error.reason).toBe("unreachable")
        expect(error.message).toContain(`HTTP status ${status}`)
        expect(node.seen.length).toBe(1)
      })
    )

  it.live("400 with a JSON-RPC error is what the node says, without the key that it quotes", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => {
        const [asked] = callsOf(body)
        const message = `bad project at https://rpc.example/v3/${secret}?x\n(path /v3/${secret}, key ${secret})`
        json(response, { jsonrpc: "2.0", id: asked?.id, error: { code: -32_002, message } }, 400)
      })
      const chain = yield* connect(node)
      const error = yield* failure(chain.chainId, node)
      expect(error).toMatchObject({ reason: "rejected", rpcCode: -32_002 })
      expect(error.message).toBe("bad project at (URL) (path ..., key ...)")
    })
  )

  for (const status of [408, 500, 502, 503, 504, 521, 599])
    it.live(`status ${status} is retried twice`, () =>
      Effect.gen(function* () {
        const node = yield* http((response) => {
          response.writeHead(status)
          response.end()
        })
        const chain = yield* connect(node)
        const error = yield* failure(chain.chainId, node)
        expect(error.reason).toBe("unavailable")
        expect(error.message).toContain(`HTTP status ${status}`)
        expect(node.seen.length).toBe(3)
      })
    )

  it.live("a burst of 429 is waited out by reads", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) => {
        if (turn >= 20) return honest(response, body, () => "0x7")
        response.writeHead(429, turn % 2 === 0 ? { "retry-after": "0" } : {})
        response.end("slow down")
      })
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 30)
      expect(answers.every((answer) => answer._tag === "Success" && answer.success === 7n)).toBe(true)
      // In requests of 1, 1, 2, 2, 4, 4, 8 and 8.
      expect(node.seen.length).toBe(28)
    })
  )

  it.live("a lasting 429 is the failure, and so is a 429 with a long Retry-After", () =>
    Effect.gen(function* () {
      let header: Record<string, string> = {}
      const node = yield* http((response) => {
        response.writeHead(429, header)
        response.end()
      })
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("rateLimited")
      expect(node.seen.length).toBe(31)
      header = { "retry-after": "3600" }
      expect(yield* reasonOf(chain.chainId, node)).toBe("rateLimited")
      expect(node.seen.length).toBe(32)
    })
  )

  it.live("calls that the node limits inside a batch are repeated, the others are not", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) => {
        const calls = callsOf(body)
        const answers = calls.map(({ id }, place) =>
          turn === 0 && place >= 2
            ? {
                jsonrpc: "2.0",
                id,
                error: { code: -32_005, message: "daily request count exceeded, request rate limited" }
              }
            : { jsonrpc: "2.0", id, result: `0x${turn + 1}` }
        )
        json(response, answers)
      })
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 5)
      expect(answers.map((answer) => answer._tag === "Success" && answer.success)).toEqual([
        1n,
        1n,
        2n,
        2n,
        2n
      ])
      expect(node.seen.map(({ body }) => callsOf(body).length)).toEqual([5, 3])
    })
  )
})

describe("a node that cuts connections", () => {
  it.live("a cut before the answer is tried again, and in the end unreachable", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) => {
        if (turn === 2) return honest(response, body, () => "0x5")
        response.socket?.destroy()
      })
      const chain = yield* connect(node)
      expect(yield* chain.chainId).toBe(5n)
      expect(yield* reasonOf(chain.balance(Address.zero), node)).toBe("unreachable")
      expect(node.seen.length).toBe(6)
    })
  )

  const answer = '{"jsonrpc":"2.0","id":1,"result":"0x1"}'
  const cuts = {
    "of known length": `content-length: 1000\r\n\r\n${answer}`,
    "in chunks": `transfer-encoding: chunked\r\n\r\n${answer.length.toString(16)}\r\n${answer}\r\n`,
    "in chunks, its connection's last": `connection: close\r\ntransfer-encoding: chunked\r\n\r\n${answer.length.toString(16)}\r\n${answer}\r\n`
  }
  for (const [kind, rest] of Object.entries(cuts))
    for (const end of ["end", "resetAndDestroy"] as const)
      it.live(`a cut inside the reply ${kind} is rejected: ${end}`, () =>
        Effect.gen(function* () {
          const node = yield* tcp((socket) => {
            socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\n${rest}`, () => socket[end]()))
          })
          const chain = yield* connect(node)
          expect(yield* reasonOf(chain.chainId, node)).toBe("unreachable")
          expect(node.connections()).toBe(3)
        })
      )

  it.live("an answer that ends with its connection is an answer", () =>
    Effect.gen(function* () {
      const node = yield* tcp((socket) => {
        socket.once("data", () =>
          socket.end('HTTP/1.0 200 OK\r\nconnection: close\r\n\r\n{"jsonrpc":"2.0","id":1,"result":"0x2a"}')
        )
      })
      const chain = yield* connect(node)
      expect(yield* chain.chainId).toBe(42n)
    })
  )
})

describe("a transaction is sent exactly once", () => {
  const behaviours: ReadonlyArray<
    readonly [string, ChainRpcError["reason"], (response: ServerResponse, body: string) => void]
  > = [
    ["is cut off", "unreachable", (response) => void response.socket?.destroy()],
    ["meets silence", "unreachable", () => undefined],
    ["meets 429", "rateLimited", (response) => void response.writeHead(429, { "retry-after": "0" }).end()],
    ["meets 503", "unavailable", (response) => void response.writeHead(503).end()],
    ["meets a redirect", "unreachable", (response) => void response.writeHead(307, { location: "/" }).end()],
    [
      "is rate limited by the node",
      "rateLimited",
      (response, body) =>
        json(response, {
          jsonrpc: "2.0",
          id: callsOf(body)[0]?.id,
          error: { code: -32_029, message: "slow" }
        })
    ],
    ["meets HTML", "notAnRpc", (response) => void response.end("<html>")],
    [
      "gets another transaction's hash",
      "notAnRpc",
      (response, body) => honest(response, body, () => `0x${"11".repeat(32)}`)
    ],
    ["gets no hash", "notAnRpc", (response, body) => honest(response, body, () => null)]
  ]
  for (const [name, reason, answer] of behaviours)
    it.live(`when it ${name}`, () =>
      Effect.gen(function* () {
        const node = yield* http(answer)
        const chain = yield* connect(node, hasty)
        expect(yield* reasonOf(chain.sendRawTransaction(raw), node)).toBe(reason)
        expect(node.seen.length).toBe(1)
      })
    )

  it.live("a transaction is sent once when its sender is interrupted meanwhile", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const finished = yield* Deferred.make<void>()
      const node = yield* http((response, body) => {
        Deferred.doneUnsafe(arrived, Effect.void)
        response.on("finish", () => Deferred.doneUnsafe(finished, Effect.void))
        setImmediate(() => honest(response, body, () => null))
      })
      const chain = yield* connect(node)
      const sender = yield* Effect.forkChild(chain.sendRawTransaction(raw))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(sender)
      yield* Deferred.await(finished)
      expect(node.seen.length).toBe(1)
    })
  )
})
