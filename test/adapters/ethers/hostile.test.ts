import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as EthersChainRpc from "../../../src/adapters/ethers/ChainRpc.js"
import type { ChainClient, ChainRpcError } from "../../../src/application/ports/ChainRpc.js"
import * as Address from "../../../src/domain/evm/Address.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import {
  callsOf,
  type HostileNode,
  honest,
  httpNode,
  json,
  secret,
  tcpNode
} from "../../support/HostileNode.js"

const options: EthersChainRpc.Options = {
  egress: { allowLoopback: true },
  http: { responseBytes: 64 * 1_024 },
  retry: { baseMillis: 1, maxMillis: 5 }
}

/** Short waits for the answer to begin, or to end. Anything else has the time that a busy machine needs. */
const hasty = { http: { connectMillis: 10_000, firstByteMillis: 300, totalMillis: 10_000 } }
const brief = { http: { connectMillis: 10_000, firstByteMillis: 10_000, totalMillis: 700 } }

const acquire = (make: () => Promise<HostileNode>) =>
  Effect.acquireRelease(Effect.promise(make), (node) => Effect.promise(node.close))

const http = (answer: (response: ServerResponse, body: string, turn: number) => void) =>
  acquire(() => httpNode(answer))
const tcp = (talk: (socket: Socket) => void) => acquire(() => tcpNode(talk))

const connect = (node: HostileNode, more: EthersChainRpc.Options = {}) =>
  Effect.flatMap(EthersChainRpc.make({ ...options, ...more }), (rpc) => rpc.connect(node.url, "caller"))

const raw = Hex.unsafe("0x02c0")
const call = { to: Address.zero, data: Hex.empty }
const balances = (chain: ChainClient, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`)),
    (address) => Effect.either(chain.balance(address)),
    { concurrency: "unbounded" }
  )

/** The failure of a read; nothing of the URL but its origin may be in it. */
const failure = (effect: Effect.Effect<unknown, ChainRpcError>, node: HostileNode) =>
  Effect.map(Effect.flip(effect), (error) => {
    expect(error._tag).toBe("ChainRpcError")
    expect(error.origin).toBe(new URL(node.url).origin)
    expect(JSON.stringify({ ...error, text: String(error), message: error.message })).not.toContain(secret)
    return error
  })

const reasonOf = (effect: Effect.Effect<unknown, ChainRpcError>, node: HostileNode) =>
  Effect.map(failure(effect, node), ({ reason }) => reason)

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
    ["a result for nobody", '{"jsonrpc":"2.0","id":null,"result":"0x1"}'],
    ["another id", '{"jsonrpc":"2.0","id":99,"result":"0x1"}'],
    ["the id as text", '{"jsonrpc":"2.0","id":"1","result":"0x1"}'],
    ["the answer in a batch", '[{"jsonrpc":"2.0","id":1,"result":"0x1"}]'],
    ["neither result nor error", '{"jsonrpc":"2.0","id":1}'],
    ["an error that is none", '{"jsonrpc":"2.0","id":1,"error":true,"result":"0x1"}'],
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
    it.scopedLive(`${name}: no RPC`, () =>
      Effect.gen(function* () {
        const node = yield* http((response) => response.end(body))
        const chain = yield* connect(node)
        expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
        expect(node.seen.length).toBe(1)
      })
    )

  it.scopedLive("a compressed answer is no answer, since none was asked for", () =>
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

  it.scopedLive("what is not HTTP is no RPC", () =>
    Effect.gen(function* () {
      const node = yield* tcp((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n\r\n"))
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
    })
  )

  it.scopedLive("an answer that says it is too large is not read", () =>
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

  it.scopedLive("an answer without end is cut off at the limit, and so is its connection", () =>
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
  it.scopedLive("one that accepts the connection and is silent is unreachable, and is not asked again", () =>
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

  it.scopedLive("headers that trickle in do not stretch the time", () =>
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

  it.scopedLive("a body that trickles in ends with the total time", () =>
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

  it.scopedLive("calls that make it work may take all of the total time", () =>
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
    it.scopedLive(`${status}: redirects are not followed`, () =>
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

  for (const status of [400, 401, 403, 404, 405, 500, 501])
    it.scopedLive(`${status} with a page: unreachable, and not asked again`, () =>
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

  it.scopedLive("400 with a JSON-RPC error is what the node says, without the key that it quotes", () =>
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

  for (const status of [502, 503, 504])
    it.scopedLive(`${status} is asked again twice`, () =>
      Effect.gen(function* () {
        const node = yield* http((response) => {
          response.writeHead(status)
          response.end()
        })
        const chain = yield* connect(node)
        expect(yield* reasonOf(chain.chainId, node)).toBe("unreachable")
        expect(node.seen.length).toBe(3)
      })
    )

  it.scopedLive("a burst of 429 is waited out by reads", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) => {
        if (turn >= 20) return honest(response, body, () => "0x7")
        response.writeHead(429, turn % 2 === 0 ? { "retry-after": "0" } : {})
        response.end("slow down")
      })
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 30)
      expect(answers.every((answer) => answer._tag === "Right" && answer.right === 7n)).toBe(true)
      expect(node.seen.length).toBe(21)
    })
  )

  it.scopedLive("a 429 that lasts is the failure, and so is one that asks to wait for long", () =>
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

  it.scopedLive("calls that the node limits inside a batch are repeated, the others are not", () =>
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
      expect(answers.map((answer) => answer._tag === "Right" && answer.right)).toEqual([1n, 1n, 2n, 2n, 2n])
      expect(node.seen.map(({ body }) => callsOf(body).length)).toEqual([5, 3])
    })
  )
})

describe("a node that cuts connections", () => {
  it.scopedLive("a cut before the answer is tried again, and in the end unreachable", () =>
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

  it.scopedLive("a cut inside the answer is no answer", () =>
    Effect.gen(function* () {
      const node = yield* http((response) => {
        response.writeHead(200, { "content-length": "1000" })
        response.write('{"jsonrpc":"2.0","id":1,"result":"0x1"}')
        response.flushHeaders()
        setImmediate(() => response.socket?.destroy())
      })
      const chain = yield* connect(node)
      const error = yield* failure(chain.chainId, node)
      expect(error.reason).toBe("unreachable")
      expect(node.seen.length).toBe(3)
    })
  )

  it.scopedLive("an answer that ends with its connection is an answer", () =>
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
    ["meets 503", "unreachable", (response) => void response.writeHead(503).end()],
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
    it.scopedLive(`when it ${name}`, () =>
      Effect.gen(function* () {
        const node = yield* http(answer)
        const chain = yield* connect(node, hasty)
        expect(yield* reasonOf(chain.sendRawTransaction(raw), node)).toBe(reason)
        expect(node.seen.length).toBe(1)
      })
    )

  it.scopedLive("also when its sender goes away while it is under way", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const finished = yield* Deferred.make<void>()
      const node = yield* http((response, body) => {
        Deferred.unsafeDone(arrived, Effect.void)
        response.on("finish", () => Deferred.unsafeDone(finished, Effect.void))
        setImmediate(() => honest(response, body, () => null))
      })
      const chain = yield* connect(node)
      const sender = yield* Effect.fork(chain.sendRawTransaction(raw))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(sender)
      yield* Deferred.await(finished)
      expect(node.seen.length).toBe(1)
    })
  )
})

describe("the answers to a batch", () => {
  const answering = (change: (answers: Array<unknown>) => unknown) =>
    http((response, body) =>
      json(
        response,
        change(
          callsOf(body).map(({ id, params }) => ({
            jsonrpc: "2.0",
            id,
            result: `0x${String(params[0]).slice(-2)}`
          }))
        )
      )
    )
  const results = (change: (answers: Array<unknown>) => unknown) =>
    Effect.gen(function* () {
      const node = yield* answering(change)
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 4)
      return answers.map((answer) => (answer._tag === "Right" ? answer.right : answer.left.reason))
    })

  it.scopedLive("are matched by id, whatever their order", () =>
    Effect.map(
      results((answers) => answers.reverse()),
      (found) => expect(found).toEqual([0n, 1n, 2n, 3n])
    )
  )

  it.scopedLive("one that is left out fails its call alone", () =>
    Effect.map(
      results((answers) => answers.filter((_, place) => place !== 2)),
      (found) => expect(found).toEqual([0n, 1n, "notAnRpc", 3n])
    )
  )

  const unbelievable: ReadonlyArray<readonly [string, (answers: Array<unknown>) => unknown]> = [
    ["one twice", (answers) => [...answers, answers[0]]],
    ["one that nobody asked for", (answers) => [...answers, { jsonrpc: "2.0", id: 1_000, result: "0x0" }]],
    ["one without an id", (answers) => [...answers.slice(1), { jsonrpc: "2.0", result: "0x0" }]],
    ["something that is no answer", (answers) => [...answers.slice(1), 7]],
    ["the first alone", (answers) => answers[0]],
    ["an object of them", (answers) => ({ ...answers })]
  ]
  for (const [name, change] of unbelievable)
    it.scopedLive(`with ${name} are not believed at all`, () =>
      Effect.map(results(change), (found) =>
        expect(found).toEqual(["notAnRpc", "notAnRpc", "notAnRpc", "notAnRpc"])
      )
    )

  it.scopedLive("one error for all of it is every call's", () =>
    Effect.map(
      results(() => ({ jsonrpc: "2.0", id: null, error: { code: -32_001, message: "unauthorized" } })),
      (found) => expect(found).toEqual(["rejected", "rejected", "rejected", "rejected"])
    )
  )

  it.scopedLive("a node that takes few calls at once gets few, and from then on at once", () =>
    Effect.gen(function* () {
      const refusals = [
        { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batch too large" } },
        [{ jsonrpc: "2.0", id: 1, error: { code: -32_600, message: "batch too large" } }]
      ]
      for (const refusal of refusals) {
        const node = yield* http((response, body) => {
          if (callsOf(body).length > 3) json(response, refusal)
          else honest(response, body, ({ params }) => `0x${String(params[0]).slice(-2)}`)
        })
        const chain = yield* connect(node)
        const expected = Array.from({ length: 10 }, (_, n) => BigInt(n))
        const values = (answers: Effect.Effect.Success<ReturnType<typeof balances>>) =>
          answers.map((answer) => answer._tag === "Right" && answer.right)
        expect(values(yield* balances(chain, 10))).toEqual(expected)
        const before = node.seen.length
        expect(values(yield* balances(chain, 10))).toEqual(expected)
        expect(node.seen.slice(before).map(({ body }) => callsOf(body).length)).toEqual([2, 2, 2, 2, 2])
      }
    })
  )

  it.scopedLive("a node that takes no batches, or says 413, is asked one by one", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => {
        if (body.startsWith("[")) response.writeHead(413).end("too large")
        else honest(response, body, () => "0x1")
      })
      const chain = yield* connect(node)
      const answers = yield* balances(chain, 9)
      expect(answers.every(({ _tag }) => _tag === "Right")).toBe(true)
      expect(node.seen.filter(({ body }) => !body.startsWith("[")).length).toBe(9)
    })
  )
})

describe("connections", () => {
  it.scopedLive("are kept and used again", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body) => honest(response, body, () => "0x1"))
      const chain = yield* connect(node)
      for (let turn = 0; turn < 10; turn++) yield* chain.balance(Address.zero)
      expect(node.seen.length).toBe(10)
      expect(node.connections()).toBe(1)
    })
  )

  it.scopedLive("to one host are bounded, and nothing is lost over that", () =>
    Effect.gen(function* () {
      let most = 0
      const node: HostileNode = yield* http((response, body) => {
        most = Math.max(most, node.open())
        setImmediate(() => honest(response, body, () => "0x1"))
      })
      const chain = yield* connect(node, { http: { connectionsPerHost: 3 }, batches: { batchCalls: 1 } })
      const answers = yield* balances(chain, 40)
      expect(answers.every(({ _tag }) => _tag === "Right")).toBe(true)
      expect(most).toBeLessThanOrEqual(3)
      expect(node.connections()).toBeLessThanOrEqual(3)
    })
  )

  it.scopedLive("all end with the scope, and whoever waits or comes later is told", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const node = yield* http(() => Deferred.unsafeDone(arrived, Effect.void))
      const scope = yield* Scope.make()
      const rpc = yield* Scope.extend(EthersChainRpc.make({ egress: { allowLoopback: true } }), scope)
      const chain = yield* rpc.connect(node.url, "caller")
      const waiting = yield* Effect.fork(
        Effect.all(
          [reasonOf(chain.balance(Address.zero), node), reasonOf(chain.sendRawTransaction(raw), node)],
          {
            concurrency: "unbounded"
          }
        )
      )
      yield* Deferred.await(arrived)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(waiting)).toEqual(["unreachable", "unreachable"])
      yield* Effect.promise(node.drained)
      expect(yield* reasonOf(chain.balance(Address.zero), node)).toBe("unreachable")
      expect(yield* reasonOf(chain.chainId, node)).toBe("unreachable")
      expect(yield* reasonOf(chain.sendRawTransaction(raw), node)).toBe("unreachable")
    })
  )

  it.scopedLive("an asker who goes away takes nobody's answer along", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const node = yield* http((response, body) => {
        Deferred.unsafeDone(arrived, Effect.void)
        Effect.runFork(
          Effect.zipRight(
            Deferred.await(go),
            Effect.sync(() => honest(response, body, () => "0x9"))
          )
        )
      })
      const chain = yield* connect(node, { http: {} })
      const [first, second, third] = yield* Effect.all([
        Effect.fork(chain.balance(Address.zero)),
        Effect.fork(chain.chainId),
        Effect.fork(chain.chainId)
      ])
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(second)
      yield* Deferred.succeed(go, undefined)
      expect(yield* Fiber.join(third)).toBe(9n)
      expect(yield* chain.chainId).toBe(9n)
      expect(node.seen.length).toBe(1)
    })
  )

  it.scopedLive("a failed chain id is asked for again", () =>
    Effect.gen(function* () {
      const node = yield* http((response, body, turn) =>
        honest(response, body, () => (turn === 0 ? "nonsense" : "0x1"))
      )
      const chain = yield* connect(node)
      expect(yield* reasonOf(chain.chainId, node)).toBe("notAnRpc")
      expect(yield* chain.chainId).toBe(1n)
    })
  )
})

describe("clients", () => {
  it.scopedLive("are remembered by trust and URL, the least used ones no longer", () =>
    Effect.gen(function* () {
      const rpc = yield* EthersChainRpc.make({ ...options, clients: 2 })
      const at = (path: string, trust: "caller" | "operator" = "caller") =>
        rpc.connect(`http://127.0.0.1:1/${path}`, trust)
      const a = yield* at("a")
      expect(yield* at("a#part")).toBe(a)
      expect(yield* at("a", "operator")).not.toBe(a)
      expect(yield* at("a")).toBe(a)
      yield* at("b")
      expect(yield* at("a")).toBe(a)
      yield* at("c")
      yield* at("d")
      expect(yield* at("a")).not.toBe(a)
    })
  )
})
